import LarkspurConsole
import LarkspurIO

extension GetOptions {
  /// Adds the user and the password that the file of `--netrc-file` or `--netrc` has for the URL's host. Those of an
  /// option or of the URL come before them. They are sent like those of `--user`, and so to no other server.
  mutating func readNetrc(for target: RequestURL) throws(CommandFailure) {
    guard usesNetrc || netrcFile != nil, !givesCredentials, target.credentials == nil,
      let file = netrcFile ?? UserPaths.home.map({ $0 + "/.netrc" })
    else { return }
    let kind = try? FilePaths.kind(of: file)
    // As in curl, the user's own file need not exist.
    guard kind != nil || netrcFile != nil else { return }
    if case .regularFile(let permissions)? = kind, permissions & 0o044 != 0 {
      Console.complain("warning: others can read the passwords in \(file)")
    }
    let bytes = try OptionFile.read(file, atMost: OptionFile.bytesMax)
    do throws(NetrcFile.Invalid) {
      session.credentials = try NetrcFile(bytes).credentials(host: target.host)
    } catch {
      throw CommandFailure(.readFailed, "\(file), \(error)")
    }
  }
}
