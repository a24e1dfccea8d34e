import LarkspurIO

extension GetOptions {
  static let options: [CommandOption<GetOptions>] =
    optionsOfRequests + optionsOfContent + optionsOfURLs.in(.urls) + optionsOfOutput.in(.output)
    + optionsOfDownloads.in(.downloads) + DownloadOptions.options.within(\.downloads).in(.downloads)
    + optionsOfHeads.in(.output) + optionsOfRecords.in(.messages)
    + optionsOfForms.in(.body) + optionsOfTime.in(.time) + optionsOfErrors.in(.output)
    + optionsOfRedirections.in(.redirection) + optionsOfSessions + TLSOptions.options.within(\.tls)

  /// The options of all commands that send a request, without those of TLS.
  static let optionsOfRequests: [CommandOption<GetOptions>] =
    optionsOfMessages.in(.messages) + optionsOfFields.in(.request) + optionsOfAuthorization.in(.authorization)
    + optionsOfConnections.in(.connection)

  private static let optionsOfMessages: [CommandOption<GetOptions>] = [
    .flag(
      "v", "verbose",
      "Write the connection's events to standard error, in milliseconds since the start: `>` is sent, `<` is received.",
      \.isVerbose),
    .flag("s", "silent", "Show no progress, no warnings and no errors.", \.isSilent),
    .flag("S", "show-error", "Show errors even with -s.", \.showsErrors),
  ]

  private static let optionsOfFields: [CommandOption<GetOptions>] = [
    .init(
      "H", "header", "'Name: value'",
      "Send the field, in place of one that would be sent by itself (Host, User-Agent, Accept, Content-Type, "
        + "Authorization). `-H 'Name:'` sends none. Repeatable."
    ) { options, value throws(UsageError) in options.fields.append(try field(value, of: "-H")) },
    .text("A", "user-agent", "NAME", "The value of User-Agent; empty for no such field.", \.userAgent),
    .init(
      "e", "referer", "URL",
      "The value of Referer. With `;auto` behind it, or alone, each redirection names the URL before it."
    ) { options, value throws(UsageError) in
      options.session.setsReferer = value.hasSuffix(";auto")
      let url = options.session.setsReferer ? String(value.dropLast(5)) : value
      options.referer = url.isEmpty ? nil : url
    },
    .init(
      "b", "cookie", "DATA|FILE",
      "Send these cookies, `NAME=VALUE; NAME=VALUE`; or, if there is no `=`, those of FILE in Netscape's format (`-`: "
        + "standard input). Repeatable."
    ) { options, value throws(UsageError) in
      if value.utf8.contains(UInt8(ascii: "=")) {
        options.session.cookies.append(value)
      } else {
        options.session.cookieJar.files.append(value)
      }
    },
  ]

  private static let optionsOfAuthorization: [CommandOption<GetOptions>] = [
    .init(
      "u", "user", "USER:PASSWORD",
      "Send them as Basic authorization. (Others on this machine can see command lines.)"
    ) { options, value throws(UsageError) in options.session.credentials = try SessionOptions.credentials(value) },
    .text(
      nil, "oauth2-bearer", "TOKEN", "Send TOKEN as Bearer authorization. It comes before --user.",
      \.session.bearerToken),
  ]

  private static let optionsOfConnections: [CommandOption<GetOptions>] = [
    .init("4", "ipv4", "", "Connect to IPv4 addresses only. The last one of -4 and -6 counts.") {
      options, _ throws(UsageError) in options.addressFamily = .ipv4
    },
    .init("6", "ipv6", "", "Connect to IPv6 addresses only.") { options, _ throws(UsageError) in
      options.addressFamily = .ipv6
    },
    .init(
      nil, "interface", "NAME|ADDRESS", "Connect from this network interface, or from this IP address of the machine."
    ) { options, value throws(UsageError) in
      options.localEndpoint = (try? LocalEndpoint(address: value)) ?? LocalEndpoint(interface: value)
    },
    .init(
      nil, "resolve", "HOST:PORT:ADDRESS[,ADDRESS]...",
      "Connect to these addresses for HOST (`*`: any) at PORT. An IPv6 address may stand in brackets. Repeatable."
    ) { options, value throws(UsageError) in try options.resolve(value) },
    .init(
      nil, "connect-to", "HOST:PORT:HOST2:PORT2",
      "Connect to HOST2 at PORT2 for HOST at PORT. TLS and the request keep HOST. Empty: any, or the URL's. Repeatable."
    ) { options, value throws(UsageError) in try options.connectTo(value) },
    .init(
      nil, "unix-socket", "PATH", "Connect to the Unix socket PATH, whatever the URL's host. No proxy is used."
    ) { options, value throws(UsageError) in options.connect(toSocket: value) },
    .init(
      "x", "proxy", "URL",
      "Go through this proxy: [KIND://][USER:PASSWORD@]HOST[:PORT], where KIND is http (as it is without one), https, "
        + "socks4, socks4a, socks5 or socks5h; 4a and 5h leave the look-up of names to the proxy. Empty: through none. "
        + "Without the option http_proxy (in lower case), https_proxy or else all_proxy count."
    ) { options, value throws(UsageError) in try options.setProxyOrConnections(value) },
    .text(
      nil, "noproxy", "LIST",
      "The hosts that are reached directly: example.org (and all below it), 192.0.2.1, 192.0.2.0/24, or * for all. "
        + "Without the option no_proxy counts.", \.proxyExceptions),
  ]

  private static let optionsOfURLs: [CommandOption<GetOptions>] = [
    .init(nil, "url", "URL", "As URL itself, for a file of options.") { options, value throws(UsageError) in
      try options.take(value)
    },
    .flag(
      "g", "globoff",
      "Take the URL as it is. Without the option {a,b}, [1-10], [001-100:2] and [a-z] in it stand for several URLs, and #1 "
        + "in the name of -o for the text of the first of these.",
      \.takesURLAsIs),
    .init(
      "K", "config", "FILE",
      "Read options from FILE (`-`: standard input), one in each line: `option = value`, with double quotes around a "
        + "value with blanks. Lines with # are comments."
    ) { options, value throws(UsageError) in try ConfigFile.read(value, into: &options) },
    .init("q", "disable", "", "As the first option: do not read $XDG_CONFIG_HOME/larkspur/get.conf.") { _, _ in },
  ]

  /// The options for the method and the content of a request.
  static let optionsOfContent: [CommandOption<GetOptions>] = optionsOfMethod.in(.request) + optionsOfData.in(.body)

  private static let optionsOfMethod: [CommandOption<GetOptions>] = [
    .init("X", "request", "METHOD", "Instead of GET (or of POST with -d).") { options, value throws(UsageError) in
      // A 2xx response to CONNECT opens a tunnel, and the command has nothing to send through one.
      guard value != "CONNECT" else { throw UsageError("CONNECT is not a request for a resource") }
      options.method = value
    }
  ]

  private static let optionsOfData: [CommandOption<GetOptions>] = [
    .init(
      "d", "data", "DATA",
      "Send DATA as the body, as a form unless -H says otherwise. `@FILE` is what FILE holds, byte for byte; `@-` is "
        + "standard input. Several are joined by `&`."
    ) { options, value throws(UsageError) in try options.add(Data(value)) },
    .init(nil, "data-binary", "DATA", "As -d.") { options, value throws(UsageError) in try options.add(Data(value)) },
    .init(nil, "data-raw", "DATA", "As -d, where `@` has no meaning.") { options, value throws(UsageError) in
      try options.add(.text(value))
    },
    .init(
      nil, "data-urlencode", "DATA",
      "As -d, percent-encoded: TEXT, =TEXT, NAME=TEXT, @FILE or NAME@FILE, of which NAME stays as it is."
    ) { options, value throws(UsageError) in try options.addEncoded(value) },
    .init(
      nil, "json", "DATA", "As -d, with Content-Type and Accept for JSON. Several are joined without anything."
    ) { options, value throws(UsageError) in try options.add(Data(value), isJSON: true) },
    .flag(
      nil, "compress", "Compress the body with gzip while it is sent. Not every server can read that.", \.compresses),
    .flag("G", "get", "Put the data of -d and its kind behind the URL, and send a GET.", \.dataIsQuery),
  ]

  private static let optionsOfOutput: [CommandOption<GetOptions>] = [
    .init(
      "o", "output", "FILE",
      "Write to FILE. It is replaced when the transfer is complete: if that fails, what was there stays. (`-`: standard "
        + "output, and any bytes to a terminal.)"
    ) { options, value throws(UsageError) in
      guard !value.isEmpty else { throw UsageError("the file of -o has no name") }
      options.output = value == "-" ? nil : value
      options.writesAnyBytes = value == "-"
    },
    .flag(
      "O", "remote-name", "As -o with the last name in the URL's path, as it stands there.", \.usesRemoteName),
  ]

  private static let optionsOfDownloads: [CommandOption<GetOptions>] = [
    .text(
      nil, "output-dir", "DIR", "Write the files of -o, -O and -i into the directory DIR, which has to be there.",
      \.outputDirectory),
    .file(
      nil, "etag-file",
      "Load only what has changed: FILE has the entity tag (ETag) of the version that is there, as of curl's "
        + "--etag-save, and gets the new one when the new version is complete.", \.etagFile),
    .flag(
      nil, "background",
      "Leave the download to the transfer service, which goes on with it when this command has ended. Goes with -o and "
        + "-H only. FILE is there when it is complete: see larkspur help transfers.", \.isInBackground),
    .flag(
      nil, "resume",
      "Complete the file of -o: ask for what comes behind its bytes. It is written in place, and stays as far as it "
        + "came when the transfer fails. If the server has another version than the file, it begins anew. A status of "
        + "400 or more fails.", \.session.resumes),
    .init("C", "continue-at", "-", "As --resume. (Another place than the end of the file is not supported.)") {
      options, value throws(UsageError) in
      guard value == "-" else {
        throw UsageError("-C wants -, the end of the file, and not \(value.debugDescription)")
      }
      options.session.resumes = true
    },
  ]

  private static let optionsOfHeads: [CommandOption<GetOptions>] = [
    .flag("i", "include", "Put the heads of all responses before the body.", \.showsHead),
    .flag("I", "head", "Ask for the head only (HEAD), and write it.", \.isHead),
    .file("D", "dump-header", "Write the heads of all responses to FILE. (`-`: standard output.)", \.headFile),
  ]

  private static let optionsOfRecords: [CommandOption<GetOptions>] = [
    .file(
      nil, "har", "Record the traffic in FILE as an HTTP Archive, for developer tools and for tests, without secrets.",
      \.harFile),
    .flag(
      nil, "as-curl", "Write the request as a command line of curl without secrets, and send nothing.", \.printsCurl),
    .flag(
      nil, "with-secrets", "Leave passwords, tokens and cookies in what --har and --as-curl write.", \.showsSecrets),
  ]

  private static let optionsOfForms: [CommandOption<GetOptions>] = [
    .init(
      "F", "form", "NAME=TEXT",
      "Send a multipart form. NAME=@FILE sends a file. ;type=TYPE, ;filename=NAME and ;headers='Name: value' may "
        + "follow. Double quotes around TEXT, FILE or NAME keep semicolons, commas and blanks. Repeatable."
    ) { options, value throws(UsageError) in options.session.parts.append(try FormPartReader.part(value)) }
  ]

  private static let optionsOfTime: [CommandOption<GetOptions>] = [
    .seconds(
      nil, "connect-timeout", "Give up when there is no connection after S seconds (0.5 is half a second).",
      \.connectTimeout),
    .init(
      nil, "lowest-rate", "BYTES:SECONDS",
      "Give up when fewer than BYTES are sent or received within SECONDS. The wait for the response does not count."
    ) { options, value throws(UsageError) in try options.setLowestRate(value) },
    .seconds("m", "max-time", "Give up when the transfer is not complete after S seconds.", \.maxTime),
    .init(nil, "limit-rate", "RATE", "Send and receive no more than RATE bytes per second each on average: 500K, 2M.") {
      options, value throws(UsageError) in options.session.bytesPerSecondMax = try SessionOptions.rate(value)
    },
    .init(
      nil, "retry", "N",
      "Send the request again, up to N times, when the connection breaks or the server answers with 408, 425, 429, 500, 502, "
        + "503 or 504, if it is a GET or its method allows that. A GET into a file is tried again twice, and continues, without this option."
    ) { options, value throws(UsageError) in
      guard let number = Int(digits: value), number <= GetOptions.retriesLimit else {
        throw UsageError("--retry wants a number from 0 to \(GetOptions.retriesLimit), not \(value.debugDescription)")
      }
      options.retriesMax = number
    },
    .flag(
      nil, "retry-all", "Send requests of all methods again, such as POST. Twice, unless --retry says otherwise.",
      \.retriesAllMethods),
  ]

  private static let optionsOfErrors: [CommandOption<GetOptions>] = [
    .flag(
      "f", "fail", "For a status of 400 or more print no body, and exit with 22.", \.failsOnHTTPError),
    .flag(nil, "fail-with-body", "For a status of 400 or more print the body, and exit with 22.", \.failsWithBody),
  ]

  private static let optionsOfRedirections: [CommandOption<GetOptions>] = [
    .flag(
      "L", "location",
      "Follow redirections. User, password and the fields of one origin are not told to another.",
      \.session.followsRedirects),
    .init(nil, "max-redirs", "N", "Follow N redirections at most, from 0 to 20, which is the default.") {
      options, value throws(UsageError) in
      guard let number = Int(digits: value), number <= SessionOptions.redirectsMaxDefault else {
        throw UsageError(
          "--max-redirs wants a number from 0 to \(SessionOptions.redirectsMaxDefault), not \(value.debugDescription)")
      }
      options.session.redirectsMax = number
    },
  ]

  private static let optionsOfSessions: [CommandOption<GetOptions>] = [
    .flag("n", "netrc", "Take user and password for the URL's host from ~/.netrc.", \.usesNetrc).in(.authorization),
    .file(nil, "netrc-file", "As --netrc, from FILE.", \.netrcFile).in(.authorization),
    .flag(
      nil, "digest", "Prove to know user and password in place of sending them: as Digest, when the server asks.",
      \.session.usesDigest
    ).in(.authorization),
    .file(
      "c", "cookie-jar",
      "Write all cookies to FILE (Netscape's format), those of -b and the new ones. (`-`: standard output.)",
      \.session.cookieJar.output
    ).in(.request),
    .flag(nil, "compressed", "Ask for gzip or deflate, and write what was compressed.", \.session.decodes).in(.output),
    .init(
      "w", "write-out", "FORMAT",
      "Write FORMAT to standard output when the transfer is over, with %{http_code}, %{time_total}, %{json}, "
        + "%header{NAME} and others of curl's. `@FILE` is the format in FILE, `@-` that in standard input."
    ) { options, value throws(UsageError) in options.writeOut = try WriteOut(option: value) }.in(.messages),
    .flag(
      nil, "metrics",
      "Show on standard error how long each part of each request took: a table, and on a terminal a picture as well.",
      \.session.showsMetrics
    ).in(.messages),
  ]
}
