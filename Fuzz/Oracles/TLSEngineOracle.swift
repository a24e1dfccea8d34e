import LarkspurBytes
import LarkspurTLS

/// Checks a TLS engine under any answer of a server to its ClientHello.
///
/// The first byte of an input chooses the versions (its value modulo 3), whether the engine asks for an identity (bit
/// 6) and whether certificates are trusted (bit 7 clear); the second is the size of the pieces. The rest is the
/// server's bytes, after which the server closes. The client's keys are new in each run, so no fixed input can complete
/// a handshake, and `done` is an error.
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

  /// A day in 2026, in seconds since 1970.
  private static let date: Int64 = 1_780_000_000
  /// The maximum number of bytes that the engine may send, whatever it receives.
  private static let sentBytesMax = 256 * 1024

  /// - Returns: The error of the engine, or `nil` if there is none.
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
      // A connection stops reading after a failure.
      guard failure == nil else { return }
      incoming.compact()
      _ = incoming.append(piece.span)
    }

    /// Runs the engine until it needs more input.
    ///
    /// - Returns: The error of the engine, or `nil` if there is none.
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
        case .needsOutput: continue
        case .needsInput: return incoming.count > 0 ? "\(incoming.count) bytes were left" : nil
        case .needsTrust(let trust):
          if let wrong = look(at: trust) { return wrong }
          engine.decide(trusts ? .trusted() : .verified)
        case .needsIdentity:
          do throws(TLSError) {
            try engine.identify(nil)
          } catch {
            return "no identity is no identity: \(error)"
          }
        }
      }
      return "it does not come to rest"
    }

    /// Reads all properties of the certificates, and evaluates the trust once more.
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
