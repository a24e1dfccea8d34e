// The AFNetworking classes that return XML documents and parsers.
@_exported import AFNetworking
@_exported import FoundationXML
