import LarkspurBytes
import LarkspurTLS

/// What must hold for a TLS engine, whatever a server answers to its ClientHello.
///
/// Of an input, the first byte chooses the versions and whether certificates are trusted, the second how the rest is
/// cut; the rest is what the server sends, and then it closes. Nobody who knows no key of the client's can come to the
/// end of a handshake, so that `done` is a finding.
package enum TLSEngineOracle {
  private static let context12 = context { $0.maximumVersion = .tls12 }
  private static let context13 = context { $0.minimumVersion = .tls13 }
  private static let contextBoth = context { _ in }

  private static func context(_ change: (inout TLSConfiguration) -> Void) -> TLSContext? {
    var configuration = TLSConfiguration()
    configuration.roots = .only([])
    change(&configuration)
    return try? TLSContext(configuration)
  }

  /// A day in 2026.
  private static let date: Int64 = 1_780_000_000
  /// No answer to whatever comes is longer than this.
  private static let sentBytesMax = 256 * 1024

  /// What is wrong with the engine, or nil.
  package static func finding(in input: [UInt8]) -> String? {
    guard input.count >= 2 else { return nil }
    let context = [context12, context13, contextBoth][Int(input[0] % 3)]
    guard let context, let server = ServerName(host: "a.example") else { return "there is no context" }
    var options = TLSEngine.Options()
    options.asksTrust = true
    options.asksIdentity = input[0] & 64 != 0
    do throws(TLSError) {
      let engine = try TLSEngine(
        context: context, key: SessionKey(server: server, port: 443), options: options, date: date)
      var run = Run(engine, trusts: input[0] & 128 == 0)
      if let wrong = run.takeStep() { return wrong }
      guard run.sent.first == 22 else { return "no ClientHello" }
      for piece in Cuts.cycling(Array(input[2...]), sizes: input[1] == 0 ? [] : [input[1]]) {
        run.append(piece)
        if let wrong = run.takeStep() { return wrong }
      }
      run.inputEnded = true
      if let wrong = run.takeStep() { return wrong }
      return run.failure == nil ? "the end of the stream is no error" : nil
    } catch {
      return "no engine: \(error)"
    }
  }

  private struct Run: ~Copyable {
    private var engine: TLSEngine
    private let trusts: Bool
    private var incoming = Chunk(capacity: 16 * 1024)
    private(set) var sent: [UInt8] = []
    private(set) var failure: TLSError?
    var inputEnded = false

    init(_ engine: consuming TLSEngine, trusts: Bool) {
      self.engine = engine
      self.trusts = trusts
    }

    mutating func append(_ piece: ArraySlice<UInt8>) {
      // After a failure nobody reads any more.
      guard failure == nil else { return }
      incoming.compact()
      _ = incoming.append(piece.span)
    }

    /// Goes on until more has to come.
    mutating func takeStep() -> String? {
      for _ in 0..<1000 {
        var outgoing = Chunk(capacity: 4096)
        let step: TLSEngine.Step
        do throws(TLSError) {
          step = try engine.handshake(&incoming, &outgoing, inputEnded: inputEnded)
        } catch {
          failure = error
          if error.problem == .handshakeTimedOut || error.problem == .outOfMemory { return "not that: \(error)" }
          _ = "\(error)"
          return nil
        }
        if failure != nil { return "the engine goes on after a failure" }
        outgoing.lend(0..<outgoing.count) { sent.append(copying: $0) }
        if sent.count > sentBytesMax { return "\(sent.count) bytes sent" }
        switch step {
        case .done: return "the handshake is done"
        case .wantsOutput: continue
        case .wantsInput: return incoming.count > 0 ? "\(incoming.count) bytes were left" : nil
        case .wantsTrust(let trust):
          if let wrong = look(at: trust) { return wrong }
          engine.decide(trusts ? .trusted : .verified)
        case .wantsIdentity:
          do throws(TLSError) {
            try engine.identify(nil)
          } catch {
            return "no identity is no identity: \(error)"
          }
        }
      }
      return "it does not come to rest"
    }

    /// Reads all that a certificate says.
    private func look(at trust: Trust) -> String? {
      if trust.result.isTrusted { return "trusted" }
      for certificate in trust.sent + trust.verified {
        let words = [certificate.subject, certificate.issuer, certificate.pin.description]
        for word in words where word.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) { return "a control character" }
        _ = (certificate.names, certificate.notBefore, certificate.notAfter, certificate.serial, certificate.mustStaple)
        guard Certificate.read(certificate.der) == [certificate] else { return "another certificate" }
      }
      do throws(TLSError) {
        let again = try trust.evaluate(host: trust.server, date: date)
        return again.result == trust.result ? nil : "\(trust.result), and then \(again.result)"
      } catch {
        return "\(error)"
      }
    }
  }
}
