// As Apple's importer has it: whoever imports AFNetworking has Foundation and URLSession with it.
@_exported import Foundation
@_exported import Larkspur
