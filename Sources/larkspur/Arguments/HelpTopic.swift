/// What `larkspur help` can tell of.
package enum HelpTopic: String, CaseIterable, Sendable {
  case overview
  case get
  case demo
  case exitStatus = "exit-status"

  package var text: String {
    switch self {
    case .overview:
      """
      larkspur: an HTTP/1.1 client written from the socket up

        larkspur get URL [option ...]   fetch a URL
        larkspur demo                   see what Larkspur can do, against a server in the same process
        larkspur help [TOPIC]           TOPIC is get, demo or exit-status
        larkspur --version

      """
    case .get:
      """
      larkspur get URL [option ...]

      Fetches URL (http only; `http://` may be left out) and writes the body to standard output.

        -o, --output FILE         Write to FILE. It is replaced when the transfer is complete: if that fails,
                                  what was there stays. (`-`: standard output.)
        -i, --include             Put the response's head before the body.
        -v, --verbose             Tell the connection's story on standard error, in milliseconds since the start:
                                  `>` is sent, `<` is received.
        -H, --header 'Name: value'
                                  Send the field, in place of one that would be sent by itself (Host, User-Agent,
                                  Accept, Content-Type, Authorization). `-H 'Name:'` sends none. Repeatable.
        -X, --request METHOD      Instead of GET (or of POST with -d).
        -d, --data DATA           Send DATA as the body, as a form unless -H says otherwise. `@FILE` is what FILE
                                  holds, byte for byte; `@-` is standard input. Several are joined by `&`.
            --connect-timeout S   Give up when there is no connection after S seconds (0.5 is half a second).
            --max-time S          Give up when the transfer is not complete after S seconds.
        -f, --fail                For a status of 400 or more print no body, and exit with 22.
        -h, --help

      A user and a password in the URL (http://user:password@host/) are sent as Basic authorization. Redirects are
      not followed. The progress is shown if standard error is a terminal and the output is a file.

      """ + "See `larkspur help exit-status` for the numbers that it exits with.\n"
    case .demo:
      """
      larkspur demo

      Starts a test server in this process, and shows Larkspur's main jobs on real traffic over the loopback
      interface. It ends with a table, and exits with 0 if all went well, otherwise with 1.

      """
    case .exitStatus:
      "larkspur exits with\n\n"
        + ExitStatus.explained.map {
          "  \(Format.padded("\($0.status.rawValue)", to: 3, atEnd: false))  \($0.meaning)\n"
        }
        .joined()
          + """
            129  Ended by SIGHUP.
            130  Ended by SIGINT (Ctrl-C).
            143  Ended by SIGTERM.

          After a failure the file of -o is as it was before. Where curl has a number for a failure, it is the same.

          """
    }
  }
}
