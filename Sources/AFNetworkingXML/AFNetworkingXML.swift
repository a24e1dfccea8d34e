// The classes of AFNetworking that give XML documents and parsers.
@_exported import AFNetworking
@_exported import FoundationXML
