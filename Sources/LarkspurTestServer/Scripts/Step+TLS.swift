// Steps for servers that speak TLS. A script begins after the handshake unless its first step is `beforeHandshake`.

extension TestServer.Step {
  /// Starts the script before the TLS handshake. Allowed as the first step only.
  ///
  /// Until ``handshake`` all steps work on the bare TCP connection: they can send garbage, answer without TLS, act as a
  /// proxy that gets a CONNECT, or hang. On a server without TLS the step does nothing.
  public static let beforeHandshake = Self(.beforeHandshake, "beforeHandshake")

  // MARK: Handshakes

  /// Does the TLS handshake. If it fails, the script ends without a failure, and ``TestServer/handshakes`` has the
  /// reason.
  ///
  /// Over TLS the step makes TLS within TLS, as behind a proxy that speaks TLS.
  public static let handshake = Self(.handshake(.init()), "handshake")

  /// Starts the handshake, and sends nothing from the server's flight of this number on. The connection then hangs
  /// until the client ends it or the server stops.
  ///
  /// - Parameters:
  ///   - flight: The number of the first flight that is not sent. Flight 1 answers the ClientHello. Flight 2 follows
  ///     the client's Finished: in TLS 1.2 the end of the handshake, in TLS 1.3 the tickets. A HelloRetryRequest is
  ///     flight 1 and moves the others by one. If there are fewer flights, the handshake succeeds.
  ///   - reached: A signal that fires when the connection stalls.
  public static func handshake(stallingBeforeFlight flight: Int, reached: TestServer.Signal? = nil) -> Self {
    Self(
      .handshake(.init(stalledFlight: flight, reached: reached)), "handshake(stallingBeforeFlight: \(flight))")
  }

  /// Answers the ClientHello with this fatal alert, such as 40 (handshake_failure), and ends the script.
  public static func refuseHandshake(alert number: UInt8) -> Self {
    Self(.handshake(.init(alert: number)), "refuseHandshake(alert: \(number))")
  }

  // MARK: Ends

  /// Signals the client by TLS that no more bytes come (close_notify), and leaves the TCP connection as it is.
  ///
  /// Without TLS the step does nothing.
  public static let closeNotify = Self(.closeNotify, "closeNotify")

  /// Closes like ``close``, but without close_notify: the client cannot distinguish this end from a truncated stream.
  public static let closeWithoutNotify = Self(.closeWithoutNotify, "closeWithoutNotify")

  // MARK: Records

  /// Sends an encrypted alert, such as 80 (internal_error). The connection stays open.
  ///
  /// The limits of ``sendRecord(type:_:)`` apply. To send an alert before the handshake, send its seven bytes:
  /// `.send([21, 3, 3, 0, 2, 2, 80])`.
  public static func sendAlert(_ number: UInt8, isFatal: Bool = true) -> Self {
    Self(.oddities(.record(type: 21, [isFatal ? 2 : 1, number]), count: 1), "sendAlert(\(number))")
  }

  /// Sends a record of any type with any content, encrypted with the connection's keys.
  ///
  /// Types are 20 (change_cipher_spec), 21 (alert), 22 (handshake), 23 (application data). The step needs TLS 1.2 or
  /// 1.3 with AES-GCM or ChaCha20-Poly1305. Key updates, tickets and renegotiation are not possible after it.
  ///
  /// - Parameters:
  ///   - type: The type of the record.
  ///   - bytes: The content, at most 65,000 bytes. More than 16,384 break the rules of TLS; no bytes are allowed.
  public static func sendRecord(type: UInt8, _ bytes: [UInt8]) -> Self {
    Self(.oddities(.record(type: type, bytes), count: 1), "sendRecord(type: \(type))")
  }

  /// Sends bytes on the TCP connection, beneath TLS: garbage, or the head of a record that is too long,
  /// `[23, 3, 3, 0x80, 0]`.
  public static func sendBelowTLS(_ bytes: [UInt8]) -> Self { Self(.sendBelowTLS(bytes), "sendBelowTLS") }

  // MARK: Unusual actions of a server

  /// Asks the client for a new handshake (HelloRequest; TLS 1.2 and before). If the client agrees, the handshake takes
  /// place while later steps read or write. See ``TestServer/Handshake/renegotiations``.
  public static let requestRenegotiation = Self(.oddities(.renegotiation, count: 1), "requestRenegotiation")

  /// Changes the server's key, `count` times (KeyUpdate; TLS 1.3).
  ///
  /// - Parameters:
  ///   - isRequested: Whether each change asks the client to change its key as well.
  ///   - count: The number of changes.
  public static func updateKey(isRequested: Bool = false, times count: Int = 1) -> Self {
    Self(.oddities(.keyUpdate(isRequested: isRequested), count: count), "updateKey")
  }

  /// Sends `count` more session tickets (NewSessionTicket; TLS 1.3).
  public static func sendTickets(_ count: Int) -> Self {
    Self(.oddities(.ticket, count: count), "sendTickets(\(count))")
  }
}
