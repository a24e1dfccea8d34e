// Steps for servers that speak TLS. Scripts begin after the handshake, unless they say otherwise.

extension TestServer.Step {
  /// As the first step: the script begins before the TLS handshake.
  ///
  /// Until ``handshake`` all steps work on the bare TCP connection: they send garbage, answer without TLS, play a proxy
  /// that is asked to CONNECT, or hang. Without TLS it means nothing.
  public static let beforeHandshake = Self(.beforeHandshake, "beforeHandshake")

  /// Does the TLS handshake. If it fails, the script ends, without a failure: ``TestServer/handshakes`` tells.
  ///
  /// It may stand where there is TLS already: then there is TLS within TLS, as behind a proxy that speaks it too.
  public static let handshake = Self(.handshake(.init()), "handshake")

  /// Tells the client by TLS that no more comes (close_notify), and leaves the TCP connection as it is.
  ///
  /// Without TLS it does nothing.
  public static let closeNotify = Self(.closeNotify, "closeNotify")

  /// As ``close``, without close_notify: the client cannot tell it from bytes that were cut off.
  public static let closeWithoutNotify = Self(.closeWithoutNotify, "closeWithoutNotify")
}
