/// The server's side of resumable uploads, without connections: the uploads, and the decisions on requests.
///
/// A request is opened by its head, gets its content piece by piece, and is finished. Section numbers are those of
/// draft 10 unless another draft is named.
package struct UploadLedger: Sendable {
  /// The head of a request.
  package struct Head: Sendable {
    var method: String
    var path: String
    var fields: TestServer.Fields
    var query: [String: String]

    package init(method: String, path: String, fields: TestServer.Fields, query: [String: String] = [:]) {
      self.method = method
      self.path = path
      self.fields = fields
      self.query = query
    }
  }

  /// The way in which a connection ends without a response.
  package enum ConnectionEnd: Hashable, Sendable {
    case reset, close, hang
  }

  /// A request whose content is being received.
  package struct Exchange: Sendable {
    /// The index of the upload.
    let index: Int
    /// The number of requests to the upload resource before this one: a later one ends this one.
    let turn: Int
    let isCreation: Bool
    let isFinal: Bool
    let fault: TestServer.ResumableUpload.Fault
    var received = 0
  }

  package enum Opening: Sendable {
    /// Respond, and do not read the content.
    case respond(TestServer.Response)
    /// Send the interim responses, and read the content.
    case receive(Exchange, interim: [TestServer.Interim])
  }

  package enum Receipt: Sendable {
    /// Send the interim responses, and read on.
    case proceed([TestServer.Interim])
    case refuse(TestServer.Response)
    case end(ConnectionEnd)
  }

  package enum Closing: Sendable {
    case respond(TestServer.Response)
    case end(ConnectionEnd)
  }

  /// A request that the server refuses.
  private struct Refusal: Error {
    let response: TestServer.Response

    init(_ status: Int, _ message: String) {
      response = .json(["error": .string(message)], status: status)
    }

    init(_ response: TestServer.Response) { self.response = response }
  }

  let path: String
  package var options: TestServer.ResumableUpload
  package private(set) var uploads: [TestServer.Upload] = []
  /// The number of requests to each upload resource.
  private var turns: [Int] = []
  /// The limits of each upload.
  private var limits: [TestServer.ResumableUpload.Limits] = []

  package init(path: String, _ options: TestServer.ResumableUpload) {
    self.path = path
    self.options = options
  }

  // MARK: - Heads

  package mutating func open(_ head: Head) -> Opening {
    let fault = options.faults.isEmpty ? .none : options.faults.removeFirst()
    do throws(Refusal) {
      guard head.path != path else { return try create(head, fault) }
      return try openResource(head, fault)
    } catch {
      return .respond(error.response)
    }
  }

  /// Returns the version that the request names, or `nil` if the server does not speak it.
  private func version(of head: Head) -> TestServer.ResumableUpload.Version? {
    guard let number = Self.number(head.fields["Upload-Draft-Interop-Version"]),
      let version = TestServer.ResumableUpload.Version(rawValue: number), options.versions.contains(version)
    else { return nil }
    return version
  }

  /// Starts an upload (section 4.2.2).
  private mutating func create(
    _ head: Head, _ fault: TestServer.ResumableUpload.Fault
  ) throws(Refusal) -> Opening {
    var fault = fault
    if let count = Self.number(head.query["cut"]) { fault = .cut(afterBytes: count) }
    var limits = options.limits
    if let size = Self.number(head.query["max-size"]) { limits.maxSize = size }
    if let size = Self.number(head.query["max-append"]) { limits.maxAppendSize = size }
    let spoken = self.version(of: head)
    var isComplete: Bool?
    if let spoken { isComplete = try completeness(head, spoken) }
    var upload = TestServer.Upload(
      number: uploads.count + 1, method: head.method, fields: head.fields, version: isComplete == nil ? nil : spoken)
    let isFinal = isComplete ?? true
    let contentLength = Self.number(head.fields["Content-Length"])
    guard let version = upload.version else {
      // An upload without resumption.
      if case .status(let status, let retryAfter) = fault { return .respond(response(status, retryAfter)) }
      upload.length = contentLength
      return receive(upload, limits, isFinal: true, fault, interim: [])
    }
    guard head.fields["Upload-Offset"] == nil else { throw Refusal(400, "a creation has no Upload-Offset") }
    upload.length = try announcedLength(head, version, offset: 0, isFinal: isFinal)
    if version.hasLimits, options.enforcesLimits {
      try check(upload.length, limits)
      try check(content: contentLength, isFinal: isFinal, limits)
    }
    var interim: [TestServer.Interim] = []
    if options.announces, head.query["announce"] != "0" {
      var announcement = TestServer.Interim(status: 104, fields: ["Location": location(upload.number)])
      announcement.fields.add(
        "Upload-Draft-Interop-Version", String(options.announcedVersion ?? version.rawValue))
      if version.hasLimits, let text = limits.text { announcement.fields.add("Upload-Limit", text) }
      if case .field(let name, let value) = fault { announcement.fields[name] = value }
      interim.append(announcement)
    }
    if case .status(let status, let retryAfter) = fault {
      add(upload, limits)
      var response = self.response(status, retryAfter)
      response.interim = interim
      return .respond(response)
    }
    return receive(upload, limits, isFinal: isFinal, fault, interim: interim)
  }

  private mutating func add(_ upload: TestServer.Upload, _ limits: TestServer.ResumableUpload.Limits) {
    uploads.append(upload)
    turns.append(0)
    self.limits.append(limits)
  }

  private mutating func receive(
    _ upload: TestServer.Upload, _ limits: TestServer.ResumableUpload.Limits, isFinal: Bool,
    _ fault: TestServer.ResumableUpload.Fault, interim: [TestServer.Interim]
  ) -> Opening {
    add(upload, limits)
    let exchange = Exchange(
      index: uploads.count - 1, turn: 0, isCreation: true, isFinal: isFinal, fault: fault)
    return .receive(exchange, interim: interim)
  }

  /// Answers a request to an upload resource. Any earlier request to the resource ends (section 4.6).
  private mutating func openResource(
    _ head: Head, _ fault: TestServer.ResumableUpload.Fault
  ) throws(Refusal) -> Opening {
    guard let number = Int(head.path.dropFirst(path.count + 1)), uploads.indices.contains(number - 1),
      let version = uploads[number - 1].version
    else { throw Refusal(404, "no such upload") }
    let index = number - 1
    guard uploads[index].isActive else { throw Refusal(410, "the upload does not exist any more") }
    guard self.version(of: head) == version else { throw Refusal(400, "the upload has another version") }
    turns[index] += 1
    switch fault {
    case .status(let status, let retryAfter): return .respond(response(status, retryAfter))
    case .forget(let status):
      uploads[index].isActive = false
      return .respond(response(status, nil))
    case .redirect(let status, let location):
      return .respond(TestServer.Response.redirect(to: location, status: status))
    case .lose(let count): uploads[index].bytes.removeLast(min(max(count, 0), uploads[index].bytes.count))
    case .conflict: return .respond(state(index, 409, fault))
    default: break
    }
    switch head.method {
    case "HEAD", "DELETE":
      // Draft 01, sections 5 and 7.
      guard head.fields["Upload-Offset"] == nil, try completeness(head, version) == nil else {
        throw Refusal(400, "\(head.method) has neither an offset nor a completeness")
      }
      guard head.method == "DELETE" else { return .respond(state(index, 204, fault)) }
      uploads[index].isActive = false
      return .respond(TestServer.Response(status: 204))
    case "PATCH": return try append(head, index, version, fault)
    default: throw Refusal(405, "an upload resource knows HEAD, PATCH and DELETE")
    }
  }

  /// Starts an append (section 4.4.2).
  private mutating func append(
    _ head: Head, _ index: Int, _ version: TestServer.ResumableUpload.Version, _ fault: TestServer.ResumableUpload.Fault
  ) throws(Refusal) -> Opening {
    if version.hasLimits, head.fields["Content-Type"] != "application/partial-upload" {
      throw Refusal(415, "an append has the type application/partial-upload")
    }
    guard let offset = Self.number(head.fields["Upload-Offset"]) else {
      throw Refusal(400, "an append has an Upload-Offset")
    }
    let isComplete = try completeness(head, version)
    guard isComplete != nil || version == .interop3 else { throw Refusal(400, "an append has an Upload-Complete") }
    if uploads[index].isComplete {
      guard version == .interop10, isComplete == true, offset == uploads[index].length else {
        throw Refusal(400, "the upload is complete")
      }
      // Draft 13, section 4.4.2: the final response is sent again.
      var response = result(index)
      response.fields.add("Upload-Complete", "?1")
      return .respond(response)
    }
    guard offset == uploads[index].bytes.count else { return .respond(state(index, 409, fault)) }
    let isFinal = isComplete ?? true
    let length = try announcedLength(head, version, offset: offset, isFinal: isFinal)
    if let length, let known = uploads[index].length, length != known {
      throw Refusal(400, "the length is \(known), not \(length)")
    }
    uploads[index].length = uploads[index].length ?? length
    if version.hasLimits, options.enforcesLimits {
      try check(content: Self.number(head.fields["Content-Length"]), isFinal: isFinal, limits[index])
    }
    let exchange = Exchange(
      index: index, turn: turns[index], isCreation: false, isFinal: isFinal, fault: fault)
    return .receive(exchange, interim: [])
  }

  // MARK: - Content

  /// Keeps the next bytes of a request's content. Call it with no bytes first.
  package mutating func receive(_ bytes: ArraySlice<UInt8>, _ exchange: inout Exchange) -> Receipt {
    let index = exchange.index
    guard isCurrent(exchange) else { return .end(.reset) }
    var taken = bytes
    var ending: ConnectionEnd?
    switch exchange.fault {
    case .cut(let count):
      taken = bytes.prefix(max(count - exchange.received, 0))
      if exchange.received + taken.count >= count { ending = .reset }
    case .close(let count):
      taken = bytes.prefix(max(count - exchange.received, 0))
      if exchange.received + taken.count >= count { ending = .close }
    default: break
    }
    let before = exchange.received
    exchange.received += taken.count
    if uploads[index].version?.hasLimits == true {
      if let most = limits[index].maxAppendSize, options.enforcesLimits, exchange.received > most {
        return .refuse(tooLarge(limits[index]))
      }
      if let length = uploads[index].length, uploads[index].bytes.count + taken.count > length {
        uploads[index].isActive = false
        return .refuse(Refusal(400, "more bytes than the upload's length").response)
      }
    }
    uploads[index].bytes += taken
    if let ending { return .end(ending) }
    guard let step = options.progressBytes, step > 0, uploads[index].version?.hasLimits == true,
      before / step < exchange.received / step
    else { return .proceed([]) }
    var fields = TestServer.Fields()
    fields.add("Upload-Draft-Interop-Version", String(uploads[index].version?.rawValue ?? 0))
    fields.add("Upload-Offset", String(uploads[index].bytes.count))
    if case .offset(let lie) = exchange.fault { fields["Upload-Offset"] = String(lie) }
    return .proceed([TestServer.Interim(status: 104, fields: fields)])
  }

  private func isCurrent(_ exchange: Exchange) -> Bool {
    uploads[exchange.index].isActive && turns[exchange.index] == exchange.turn
  }

  /// All of a request's content has arrived.
  package mutating func finish(_ exchange: Exchange) -> Closing {
    let index = exchange.index
    guard isCurrent(exchange) else { return .end(.reset) }
    if exchange.isFinal {
      if let length = uploads[index].length, uploads[index].bytes.count != length {
        return .respond(Refusal(400, "the upload's length is \(length)").response)
      }
      uploads[index].isComplete = true
    }
    switch exchange.fault {
    case .loseResponse: return .end(.reset)
    case .hang: return .end(.hang)
    default: break
    }
    guard let version = uploads[index].version else { return .respond(result(index)) }
    var response = exchange.isFinal ? result(index) : TestServer.Response(status: 201)
    if !exchange.isFinal, !exchange.isCreation, version.hasLimits { response.status = 204 }
    if version.hasLimits { response.fields.add("Upload-Complete", exchange.isFinal ? "?1" : "?0") }
    if version == .interop3 {
      if !exchange.isFinal { response.fields.add("Upload-Incomplete", "?1") }
      response.fields.add("Upload-Offset", String(uploads[index].bytes.count))
    }
    if exchange.isCreation {
      response.fields.add("Location", location(index + 1))
      if version.hasLimits, let text = limits[index].text { response.fields.add("Upload-Limit", text) }
    }
    return .respond(distorted(response, exchange.fault, version))
  }

  // MARK: - Responses

  /// The response of the resource that the upload was meant for.
  private func result(_ index: Int) -> TestServer.Response {
    let bytes = uploads[index].bytes
    return .json(["count": .integer(bytes.count), "crc32": .string(TestServer.Checksum(bytes).description)])
  }

  /// Returns a response with the state of an upload (section 4.3.2).
  private func state(_ index: Int, _ status: Int, _ fault: TestServer.ResumableUpload.Fault) -> TestServer.Response {
    let upload = uploads[index]
    var response = TestServer.Response(status: status, fields: ["Cache-Control": "no-store"])
    response.fields.add("Upload-Offset", String(upload.bytes.count))
    if upload.version == .interop3 { response.fields.add("Upload-Incomplete", upload.isComplete ? "?0" : "?1") }
    if upload.version?.hasLimits == true {
      // Draft 13, section 4.3.2, asks for neither the completeness nor the length.
      if upload.version != .interop10 || status == 409 {
        response.fields.add("Upload-Complete", upload.isComplete ? "?1" : "?0")
        if let length = upload.length { response.fields.add("Upload-Length", String(length)) }
      }
      if let text = limits[index].text { response.fields.add("Upload-Limit", text) }
    }
    return distorted(response, fault, upload.version)
  }

  private func distorted(
    _ response: TestServer.Response, _ fault: TestServer.ResumableUpload.Fault,
    _ version: TestServer.ResumableUpload.Version?
  ) -> TestServer.Response {
    var response = response
    switch fault {
    case .offset(let lie): response.fields["Upload-Offset"] = String(lie)
    case .noOffset: response.fields["Upload-Offset"] = nil
    case .complete(let lie):
      response.fields[version == .interop3 ? "Upload-Incomplete" : "Upload-Complete"] =
        (version == .interop3) == lie ? "?0" : "?1"
    case .field(let name, let value): response.fields[name] = value
    default: break
    }
    return response
  }

  private func response(_ status: Int, _ retryAfter: Int?) -> TestServer.Response {
    var response = TestServer.Response.json(["error": "a fault that was asked for"], status: status)
    if let retryAfter { response.fields.add("Retry-After", String(retryAfter)) }
    return response
  }

  private func tooLarge(_ limits: TestServer.ResumableUpload.Limits) -> TestServer.Response {
    var response = Refusal(413, "larger than a limit").response
    if let text = limits.text { response.fields.add("Upload-Limit", text) }
    return response
  }

  private func location(_ number: Int) -> String { "\(path)/\(number)" }

  // MARK: - Checks

  private func check(_ length: Int?, _ limits: TestServer.ResumableUpload.Limits) throws(Refusal) {
    if let length, length > limits.maxSize ?? .max { throw Refusal(tooLarge(limits)) }
    if length ?? 0 < limits.minSize ?? 0 { throw Refusal(400, "smaller than a limit") }
  }

  private func check(
    content: Int?, isFinal: Bool, _ limits: TestServer.ResumableUpload.Limits
  ) throws(Refusal) {
    if let content, content > limits.maxAppendSize ?? .max { throw Refusal(tooLarge(limits)) }
    if let content, !isFinal, content < limits.minAppendSize ?? 0 { throw Refusal(400, "smaller than a limit") }
  }

  /// Returns the size of the upload that a request states (section 4.1.3).
  private func announcedLength(
    _ head: Head, _ version: TestServer.ResumableUpload.Version, offset: Int, isFinal: Bool
  ) throws(Refusal) -> Int? {
    let counted = isFinal ? Self.number(head.fields["Content-Length"]).map { $0 + offset } : nil
    guard version.hasLimits, let text = head.fields["Upload-Length"] else { return counted }
    guard let length = Self.number(text) else { throw Refusal(400, "Upload-Length is no number") }
    guard counted == nil || counted == length else { throw Refusal(400, "two lengths that differ") }
    return length
  }

  /// Returns the completeness that a request states, or `nil` if it does not state it.
  private func completeness(
    _ head: Head, _ version: TestServer.ResumableUpload.Version
  ) throws(Refusal) -> Bool? {
    let name = version == .interop3 ? "Upload-Incomplete" : "Upload-Complete"
    switch head.fields[name] {
    case nil: return nil
    case "?0": return version == .interop3
    case "?1": return version != .interop3
    case let other?: throw Refusal(400, "\(name) is no Boolean: \(other)")
    }
  }

  /// Returns the number that at most 15 digits make.
  private static func number(_ text: String?) -> Int? {
    guard let text, 1...15 ~= text.utf8.count, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int(text)
  }
}
