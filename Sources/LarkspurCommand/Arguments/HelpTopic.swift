import LarkspurConsole

/// A topic of `larkspur help`.
package enum HelpTopic: String, CaseIterable, Sendable {
  case overview
  case get
  case socket
  case events
  case pins
  case check
  case transfers
  case exitStatus = "exit-status"

  /// The topics that are commands.
  static let commands: [HelpTopic] = [.get, .socket, .events, .pins, .check, .transfers]

  package var text: String {
    switch self {
    case .overview:
      """
      larkspur: an HTTP/1.1 client written from the socket up

        larkspur [get] URL [option ...]   fetch a URL
        larkspur socket URL [option ...]  send lines to a WebSocket, and show its messages
        larkspur events URL [option ...]  show the events of an event stream
        larkspur pins URL [option ...]    show the keys of a server's certificates, for --pin
        larkspur check PROGRAM ...        tell whether programs still have the toolchain's networking in them
        larkspur transfers ACTION         show and change the transfers that outlive their programs
        larkspur help [TOPIC]             TOPIC is get, socket, events, pins, check, transfers or exit-status
        larkspur --version

      """
    case .get:
      """
      larkspur get URL [option ...]
      larkspur get -i LIST [option ...]

      Fetches URL (http or https; `http://` may be left out) and writes the body to standard output.


      """ + GetOptions.optionsHelp + """

        A user and a password in the URL (http://user:password@host/) are sent as Basic authorization. Redirects are
        not followed without -L. The progress is shown if standard error is a terminal: of a download into a file, and
        of an upload of 64 KiB or more.

        """ + "See `larkspur help exit-status` for the numbers that it exits with.\n"
    case .socket: SocketOptions.help
    case .events: EventsOptions.help
    case .pins:
      """
      larkspur pins URL [option ...]

      Makes a TLS connection to the server of URL (`https://` may be left out), verifies its certificates, and prints
      the pin of each in the verified chain, from the server's own to the root:

        sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=  CN=example.org

      A pin goes by the key, and survives the renewal of the certificate as long as the key stays. Pin at least two,
      one of them of a key that is kept in reserve.


      """ + PinsOptions.optionsHelp
    case .check:
      """
      larkspur check [--mend] PROGRAM ...

      Tells whether anything of the toolchain's FoundationNetworking or of curl's library is in a program: an executable,
      a test bundle or a shared library, linked dynamically or statically. `ldd` lists its shared libraries; those of the
      package are looked at as well. The program is not run.

      In a build folder of SwiftPM (.build/debug/PROGRAM) it also names the targets that were compiled against the
      toolchain's module, or before Larkspur was last built. Run it after each change of the package's dependencies, when
      packages that do not know of Larkspur are compiled against it by the product FoundationNetworking. The folder
      itself (.build/debug) will do, if there is no program yet.


      """ + CheckOptions.optionsHelp + """

        It exits with 0 if there is nothing, with 110 if there is something, and with 111 if that cannot be told.

        """
    case .transfers: TransfersOptions.help
    case .exitStatus:
      "larkspur exits with\n\n"
        + ExitStatus.allCases.map { "  \(Format.padded("\($0.rawValue)", to: 3, atEnd: false))  \($0.meaning)\n" }
        .joined()
          + """

          After a failure the file of -o is as it was before. Where curl has a number for a failure, it is the same.

          """
    }
  }
}
