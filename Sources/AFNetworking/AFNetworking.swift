// As on Darwin, a file that imports AFNetworking also sees Foundation and URLSession.
@_exported import Foundation
@_exported import Larkspur
