extension Connection {
  /// Answers a request for a resumable upload, whose head has been read. Each piece of the content counts as soon as it
  /// has arrived, so that an upload that breaks off can continue.
  func serveUpload(
    _ head: TestServer.Request, _ uploads: TestServer.Uploads, on wire: Wire
  ) throws -> Outcome {
    let recordNumber = core.record(head)
    let opening = uploads.open(
      UploadLedger.Head(method: head.method, path: head.path, fields: head.fields, query: head.query))
    switch opening {
    case .respond(let response): return try refuseContent(response, of: head, on: wire)
    case .receive(let exchange, let interim):
      try ResponseWriter(wire: wire, core: core).write(interim, to: head)
      return try receive(exchange, head, recordNumber, uploads, on: wire)
    }
  }

  private func receive(
    _ opened: UploadLedger.Exchange, _ head: TestServer.Request, _ recordNumber: Int, _ uploads: TestServer.Uploads,
    on wire: Wire
  ) throws -> Outcome {
    let writer = ResponseWriter(wire: wire, core: core)
    var exchange = opened
    var request = head
    var interruption: UploadLedger.Receipt?
    func take(_ bytes: ArraySlice<UInt8>) throws(RequestReader.Failure) {
      let receipt = uploads.receive(bytes, &exchange)
      guard case .proceed(let interim) = receipt else {
        interruption = receipt
        throw .endedInBody
      }
      do { try writer.write(interim, to: head) } catch { throw .endedInBody }
    }
    var reader = self.reader(wire)
    reader.onContent = take
    defer { core.amendRequest(recordNumber, with: request) }
    do {
      try take([])
      try reader.readBody(of: &request)
    } catch {
      switch interruption {
      case .end(let ending)?: return end(ending, wire)
      case .refuse(let response)?: return try refuseContent(response, of: head, on: wire)
      case .proceed?, nil: throw error
      }
    }
    switch uploads.finish(exchange) {
    case .respond(let response): return try respond(response, to: request, on: wire)
    case .end(let ending): return end(ending, wire)
    }
  }

  /// Responds to a request whose content is not read to its end, and closes the connection if there is any.
  private func refuseContent(
    _ response: TestServer.Response, of request: TestServer.Request, on wire: Wire
  ) throws -> Outcome {
    var response = response
    if RequestReader.announcesBody(request) { response.closesConnection = true }
    return try respond(response, to: request, on: wire)
  }

  private func end(_ ending: UploadLedger.ConnectionEnd, _ wire: Wire) -> Outcome {
    switch ending {
    case .reset: wire.reset()
    case .close: wire.close()
    case .hang: _ = try? wire.waitForPeerEnd()
    }
    return .over
  }
}
