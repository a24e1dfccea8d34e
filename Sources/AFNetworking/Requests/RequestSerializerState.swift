import Foundation
import Larkspur

/// The state of a request serializer.
struct RequestSerializerState {
  /// The properties that requests get only if they have been set.
  struct Settings {
    var allowsCellularAccess: Bool?
    var cachePolicy: NSURLRequest.CachePolicy?
    var handlesCookies: Bool?
    var usesPipelining: Bool?
    var networkServiceType: NSURLRequest.NetworkServiceType?
    var timeoutInterval: TimeInterval?

    func apply(to request: inout URLRequest) {
      if let allowsCellularAccess { request.allowsCellularAccess = allowsCellularAccess }
      if let cachePolicy { request.cachePolicy = cachePolicy }
      if let handlesCookies { request.httpShouldHandleCookies = handlesCookies }
      if let usesPipelining { request.httpShouldUsePipelining = usesPipelining }
      if let networkServiceType { request.networkServiceType = networkServiceType }
      if let timeoutInterval { request.timeoutInterval = timeoutInterval }
    }
  }

  /// The latest request, with the settings and the fields, and without parameters. Reused as long as the settings do
  /// not change.
  private struct Template {
    let method: String
    let url: URL
    let request: URLRequest
    let hasQuery: Bool
  }

  var fields: [String: String] { didSet { template = nil } }
  var stringEncoding = String.Encoding.utf8.rawValue
  var settings = Settings() { didSet { template = nil } }
  private var template: Template?
  var methodsWithQuery: Set<String> = ["GET", "HEAD", "DELETE"] { didSet { template = nil } }
  var style = AFHTTPRequestQueryStringSerializationStyle.defaultStyle
  /// The program makes the block safe for the threads on which it uses the serializer.
  var query: UncheckedSendable<AFHTTPRequestSerializer.QueryStringSerialization>?
  // For JSON.
  var writingOptions: JSONSerialization.WritingOptions = []
  // For property lists.
  var format = PropertyListSerialization.PropertyListFormat.xml
  var writeOptions: PropertyListSerialization.WriteOptions = 0

  init(fields: [String: String]) { self.fields = fields }

  /// Returns a request with the settings and the fields, and whether its parameters go into the query. Reuses the
  /// latest request, so that the fields are written only once.
  mutating func request(_ method: String, _ url: URL) -> (request: URLRequest, hasQuery: Bool) {
    if let template, template.method == method, template.url == url { return (template.request, template.hasQuery) }
    var request: URLRequest
    if let template {
      request = template.request
      request.url = url
    } else {
      request = URLRequest(url: url)
      settings.apply(to: &request)
      for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
    }
    request.httpMethod = method
    let hasQuery = methodsWithQuery.contains((request.httpMethod ?? "GET").uppercased())
    template = Template(method: method, url: url, request: request, hasQuery: hasQuery)
    return (request, hasQuery)
  }

  mutating func setField(_ field: String, to value: String?) {
    if let name = name(of: field) { fields[name] = nil }
    fields[field] = value
  }

  func field(_ field: String) -> String? { name(of: field).flatMap { fields[$0] } }

  /// Returns the field's name in the spelling of `fields`.
  private func name(of field: String) -> String? {
    if fields[field] != nil { return field }
    return fields.keys.first { $0.lowercased() == field.lowercased() }
  }
}

/// Archives. Optional settings are left out until they are set. AFNetworking's archives have only the first two keys.
extension RequestSerializerState {
  private enum Key {
    static let fields = "mutableHTTPRequestHeaders"
    static let style = "queryStringSerializationStyle"
    static let stringEncoding = "stringEncoding"
    static let allowsCellularAccess = "allowsCellularAccess"
    static let cachePolicy = "cachePolicy"
    static let handlesCookies = "HTTPShouldHandleCookies"
    static let usesPipelining = "HTTPShouldUsePipelining"
    static let networkServiceType = "networkServiceType"
    static let timeoutInterval = "timeoutInterval"
    static let methodsWithQuery = "HTTPMethodsEncodingParametersInURI"
    static let writingOptions = "writingOptions"
    static let format = "format"
    static let writeOptions = "writeOptions"
  }

  func encode(with coder: NSCoder) {
    coder.encode(fields as NSDictionary, forKey: Key.fields)
    coder.encode(number: style.rawValue, forKey: Key.style)
    coder.encode(number: stringEncoding, forKey: Key.stringEncoding)
    if let value = settings.allowsCellularAccess { coder.encode(value, forKey: Key.allowsCellularAccess) }
    if let value = settings.cachePolicy { coder.encode(number: value.rawValue, forKey: Key.cachePolicy) }
    if let value = settings.handlesCookies { coder.encode(value, forKey: Key.handlesCookies) }
    if let value = settings.usesPipelining { coder.encode(value, forKey: Key.usesPipelining) }
    if let value = settings.networkServiceType { coder.encode(number: value.rawValue, forKey: Key.networkServiceType) }
    if let value = settings.timeoutInterval { coder.encode(value, forKey: Key.timeoutInterval) }
    coder.encode(methodsWithQuery.sorted() as NSArray, forKey: Key.methodsWithQuery)
    coder.encode(number: writingOptions.rawValue, forKey: Key.writingOptions)
    coder.encode(number: format.rawValue, forKey: Key.format)
    coder.encode(Int64(writeOptions), forKey: Key.writeOptions)
  }

  init(_ decoder: NSCoder) {
    self.init(fields: decoder.textsByName(forKey: Key.fields) ?? DefaultFields.current)
    style = decoder.number(forKey: Key.style).flatMap { .init(rawValue: $0) } ?? style
    stringEncoding = decoder.number(forKey: Key.stringEncoding) ?? stringEncoding
    settings.allowsCellularAccess = decoder.flag(forKey: Key.allowsCellularAccess)
    settings.cachePolicy = decoder.number(forKey: Key.cachePolicy).flatMap { .init(rawValue: $0) }
    settings.handlesCookies = decoder.flag(forKey: Key.handlesCookies)
    settings.usesPipelining = decoder.flag(forKey: Key.usesPipelining)
    settings.networkServiceType = decoder.number(forKey: Key.networkServiceType).flatMap { .init(rawValue: $0) }
    settings.timeoutInterval = decoder.decimal(forKey: Key.timeoutInterval)
    methodsWithQuery = decoder.texts(forKey: Key.methodsWithQuery).map { Set($0) } ?? methodsWithQuery
    writingOptions = decoder.number(forKey: Key.writingOptions).map { .init(rawValue: $0) } ?? writingOptions
    format = decoder.number(forKey: Key.format).flatMap { .init(rawValue: $0) } ?? format
    writeOptions = decoder.number(forKey: Key.writeOptions).map { Int(clamping: $0) } ?? writeOptions
  }
}
