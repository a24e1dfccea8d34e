// Steps for servers that speak TLS. Scripts begin after the handshake, unless they say otherwise.

extension TestServer.Step {
  /// As the first step: the script begins before the TLS handshake.
  ///
  /// Until ``handshake`` all steps work on the bare TCP connection: they send garbage, answer without TLS, play a proxy
  /// that is asked to CONNECT, or hang. Without TLS it means nothing.
  public static let beforeHandshake = Self(.beforeHandshake, "beforeHandshake")

  // MARK: Handshakes

  /// Does the TLS handshake. If it fails, the script ends, without a failure: ``TestServer/handshakes`` tells.
  ///
  /// It may stand where there is TLS already: then there is TLS within TLS, as behind a proxy that speaks it too.
  public static let handshake = Self(.handshake(.init()), "handshake")

  /// Begins the handshake, and sends nothing more where a flight of the server's is due. It waits there until the client
  /// gives up or the server stops.
  ///
  /// - Parameters:
  ///   - flight: 1 is the answer to the ClientHello. Then comes what follows the client's Finished: in TLS 1.2 the end of
  ///     the handshake, in TLS 1.3 the tickets. (After a HelloRetryRequest, which is flight 1, there is one more.) If there
  ///     are not so many flights, the handshake is done in order.
  ///   - reached: Fires when it has come to the stall.
  public static func handshake(stallingBeforeFlight flight: Int, reached: TestServer.Signal? = nil) -> Self {
    Self(
      .handshake(.init(stalledFlight: flight, reached: reached)), "handshake(stallingBeforeFlight: \(flight))")
  }

  /// Answers the ClientHello with this fatal alert, such as 40 (handshake_failure). That ends the script.
  public static func refuseHandshake(alert number: UInt8) -> Self {
    Self(.handshake(.init(alert: number)), "refuseHandshake(alert: \(number))")
  }

  // MARK: Ends

  /// Tells the client by TLS that no more comes (close_notify), and leaves the TCP connection as it is.
  ///
  /// Without TLS it does nothing.
  public static let closeNotify = Self(.closeNotify, "closeNotify")

  /// As ``close``, without close_notify: the client cannot tell it from bytes that were cut off.
  public static let closeWithoutNotify = Self(.closeWithoutNotify, "closeWithoutNotify")

  // MARK: Records

  /// Sends an alert, such as 80 (internal_error), encrypted like all else. It leaves the connection as it is.
  ///
  /// See ``sendRecord(type:_:)``. Before the handshake, send the seven bytes: `.send([21, 3, 3, 0, 2, 2, 80])`.
  public static func sendAlert(_ number: UInt8, isFatal: Bool = true) -> Self {
    Self(.oddities(.record(type: 21, [isFatal ? 2 : 1, number]), count: 1), "sendAlert(\(number))")
  }

  /// Sends a record of any type with any content, encrypted with the connection's keys.
  ///
  /// Types are 20 (change_cipher_spec), 21 (alert), 22 (handshake), 23 (application data). It needs TLS 1.2 or 1.3 with
  /// AES-GCM or ChaCha20-Poly1305. After it, key updates, tickets and renegotiation cannot be asked for any more.
  ///
  /// - Parameter bytes: 65,000 at most. More than 16,384 break the rules, no bytes at all are allowed.
  public static func sendRecord(type: UInt8, _ bytes: [UInt8]) -> Self {
    Self(.oddities(.record(type: type, bytes), count: 1), "sendRecord(type: \(type))")
  }

  /// Sends bytes on the TCP connection, past TLS: garbage, or the head of a record that is too long, [23, 3, 3, 0x80, 0].
  public static func sendBelowTLS(_ bytes: [UInt8]) -> Self { Self(.sendBelowTLS(bytes), "sendBelowTLS") }

  // MARK: What servers seldom do

  /// Asks for a new handshake (HelloRequest; TLS 1.2 and before). It is done, if the client wants it, while later steps
  /// read or write. See ``TestServer/Handshake/renegotiations``.
  public static let requestRenegotiation = Self(.oddities(.renegotiation, count: 1), "requestRenegotiation")

  /// Changes the server's key, so many times (KeyUpdate; TLS 1.3).
  ///
  /// - Parameter isRequested: Whether the client is to change its key too, each time.
  public static func updateKey(isRequested: Bool = false, times count: Int = 1) -> Self {
    Self(.oddities(.keyUpdate(isRequested: isRequested), count: count), "updateKey")
  }

  /// Sends so many session tickets more (NewSessionTicket; TLS 1.3).
  public static func sendTickets(_ count: Int) -> Self {
    Self(.oddities(.ticket, count: count), "sendTickets(\(count))")
  }
}
