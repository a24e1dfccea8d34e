@_exported import Larkspur
