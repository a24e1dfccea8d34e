import Foundation
import TestKit
import Testing
import ZipArchive

/// Archives of other programs, and other programs with archives of ours.
@Suite(.ownThread) struct OtherArchiversTests {
  private static let text = String(repeating: "All work and no play makes Jack a dull boy.\n", count: 500)

  /// Creates a directory `in` with files of several kinds.
  private func filled() throws -> Room {
    let room = try Room()
    try room.write("in/a.txt", Self.text)
    try room.write("in/größe/日本.txt", "UTF-8")
    try room.write("in/größe/run.sh", "#!/bin/sh\n")
    try room.write("in/empty", "")
    try FileManager.default.createDirectory(atPath: room.path("in/hollow"), withIntermediateDirectories: true)
    try FileManager.default.setAttributes([.posixPermissions: 0o750], ofItemAtPath: room.path("in/größe/run.sh"))
    let date = Date(timeIntervalSince1970: 1_700_000_000)
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: room.path("in/a.txt"))
    return room
  }

  private static let names = ["a.txt", "empty", "größe", "größe/run.sh", "größe/日本.txt", "hollow"]

  private func checkCopy(_ room: Room, at directory: String) throws {
    #expect(room.names(directory) == Self.names)
    #expect(room.text(directory + "/a.txt") == Self.text)
    #expect(room.text(directory + "/größe/日本.txt") == "UTF-8")
    #expect(room.text(directory + "/empty") == "")
  }

  // MARK: - Theirs

  @Test func readsInfoZIP() throws {
    let room = try filled()
    let run = try room.run("sh", "-c", "cd in && zip -q -r ../made.zip .")
    #expect(run.status == 0, "\(run.output)")
    #expect(extract(room.path("made.zip"), in: room) == nil)
    try checkCopy(room, at: "out")
    #expect(try room.permissions("out/größe/run.sh") == 0o750)
    #expect(try room.modified("out/a.txt") == Date(timeIntervalSince1970: 1_700_000_000))
  }

  /// An archive that was written to a pipe: sizes stand behind the contents.
  @Test func readsInfoZIPThroughAPipe() throws {
    let room = try filled()
    let run = try room.run("sh", "-c", "cd in && zip -q -r - . | cat > ../made.zip")
    #expect(run.status == 0, "\(run.output)")
    #expect(extract(room.path("made.zip"), in: room) == nil)
    try checkCopy(room, at: "out")
  }

  @Test func readsInfoZIPLinks() throws {
    let room = try filled()
    try room.link("in/link", to: "a.txt")
    let run = try room.run("sh", "-c", "cd in && zip -q -y -r ../made.zip .")
    #expect(run.status == 0, "\(run.output)")
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: room.path("out/link")) == "a.txt")
  }

  @Test func readsInfoZIPWithAPassword() throws {
    let room = try filled()
    let run = try room.run("sh", "-c", "cd in && zip -q -r -P secret ../made.zip .")
    #expect(run.status == 0, "\(run.output)")
    try checkPassword(room)
  }

  @Test(arguments: ["AES256", "AES128", "ZipCrypto"]) func reads7zWithAPassword(method: String) throws {
    let room = try filled()
    let run = try room.run("sh", "-c", "cd in && 7z a -tzip -psecret -mem=\(method) ../made.zip . >/dev/null")
    #expect(run.status == 0, "\(run.output)")
    try checkPassword(room)
  }

  private func checkPassword(_ room: Room) throws {
    let path = room.path("made.zip")
    #expect(SSZipArchive.isFilePasswordProtected(atPath: path))
    var problem: NSError?
    #expect(SSZipArchive.isPasswordValidForArchive(atPath: path, password: "secret", error: &problem))
    #expect(!SSZipArchive.isPasswordValidForArchive(atPath: path, password: "wrong", error: &problem))
    #expect(!SSZipArchive.isPasswordValidForArchive(atPath: path, password: "", error: nil))
    #expect(problem == nil)
    #expect(extract(path, in: room, password: nil)?.archiveCode == .failedOpenFileInZip)
    // With ZipCrypto, a wrong password passes the first check by chance.
    let wrong = extract(path, in: room, password: "wrong")?.archiveCode
    #expect([.failedOpenFileInZip, .fileInfoNotLoadable, .fileContentNotReadable].contains(wrong))
    #expect(room.names("out") == nil)
    #expect(extract(path, in: room, password: "secret") == nil)
    try checkCopy(room, at: "out")
  }

  @Test func reads7z() throws {
    let room = try filled()
    let run = try room.run("sh", "-c", "cd in && 7z a -tzip ../made.zip . >/dev/null")
    #expect(run.status == 0, "\(run.output)")
    #expect(extract(room.path("made.zip"), in: room) == nil)
    try checkCopy(room, at: "out")
  }

  @Test func readsPython() throws {
    let room = try filled()
    let program = "import shutil; shutil.make_archive('made', 'zip', 'in')"
    let run = try room.run("python3", "-c", program)
    #expect(run.status == 0, "\(run.output)")
    #expect(extract(room.path("made.zip"), in: room) == nil)
    try checkCopy(room, at: "out")
  }

  /// Names of MS-DOS, and an archive behind other bytes, as self-extracting programs have it.
  @Test func readsPythonWithCP437() throws {
    let room = try Room()
    let program = """
      import zipfile
      class DOS(zipfile.ZipInfo):
        def _encodeFilenameFlags(self): return self.filename.encode('cp437'), 0
      with open('made.zip', 'wb') as file: file.write(b'x' * 1000)
      with zipfile.ZipFile('made.zip', 'a') as archive:
        info = DOS('größe.txt')
        info.create_system = 0
        archive.writestr(info, 'dos')
      """
    let run = try room.run("python3", "-c", program)
    #expect(run.status == 0, "\(run.output)")
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.text("out/größe.txt") == "dos")
  }

  /// Made by the `jar` of OpenJDK 17.
  @Test func readsJava() throws {
    let room = try Room()
    let data = try #require(
      Data(
        base64Encoded: """
          UEsDBBQACAgIAAU5plgAAAAAAAAAAAAAAAAFAAQAYS50eHT+ygAAy0jNyclXyEAnuQBQSwcIAIhZCwsAAAAYAAAAUEsDBAoAAAgAAB1De10A
          AAAAAAAAAAAAAAAEAAAAc3ViL1BLAwQUAAgICAAdQ3tdAAAAAAAAAAAAAAAADwAAAHN1Yi9ncsO2w59lLnR4dHMvOrzn8PxULgBQSwcISZQu
          FQoAAAAIAAAAUEsBAhQAFAAICAgABTmmWACIWQsLAAAAGAAAAAUABAAAAAAAAAAAAAAAAAAAAGEudHh0/soAAFBLAQIKAAoAAAgAAB1De10A
          AAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAEIAAABzdWIvUEsBAhQAFAAICAgAHUN7XUmULhUKAAAACAAAAA8AAAAAAAAAAAAAAAAAZAAAAHN1
          Yi9ncsO2w59lLnR4dFBLBQYAAAAAAwADAKYAAACrAAAAAAA=
          """, options: .ignoreUnknownCharacters))
    #expect(extract(try room.write("made.zip", data), in: room) == nil)
    #expect(room.names("out") == ["a.txt", "sub", "sub/größe.txt"])
    #expect(room.text("out/a.txt") == "hello hello hello hello\n")
    #expect(room.text("out/sub/größe.txt") == "Grüße\n")
  }

  // MARK: - Ours

  private func made(_ room: Room, level: Int32 = -1, password: String? = nil, aes: Bool = true) {
    #expect(
      SSZipArchive.createZipFile(
        atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in"), keepParentDirectory: false,
        compressionLevel: level, password: password, aes: aes, progressHandler: nil))
  }

  @Test(arguments: [-1, 0, 1, 9] as [Int32]) func infoZIPReadsOurs(level: Int32) throws {
    let room = try filled()
    made(room, level: level)
    let run = try room.run("unzip", "-q", "made.zip", "-d", "copy")
    #expect(run.status == 0, "\(run.output)")
    try checkCopy(room, at: "copy")
    #expect(try room.permissions("copy/größe/run.sh") == 0o750)
  }

  @Test func infoZIPReadsOursWithAPassword() throws {
    let room = try filled()
    made(room, password: "secret", aes: false)
    let run = try room.run("unzip", "-q", "-P", "secret", "made.zip", "-d", "copy")
    #expect(run.status == 0, "\(run.output)")
    try checkCopy(room, at: "copy")
    try checkPassword(room)
  }

  @Test func sevenZipReadsOurs() throws {
    for (password, aes) in [(nil, false), ("secret", false), ("secret", true)] {
      let room = try filled()
      made(room, password: password, aes: aes)
      let run = try room.run("7z", "x", "-p\(password ?? "")", "-ocopy", "made.zip")
      #expect(run.status == 0, "\(run.output)")
      try checkCopy(room, at: "copy")
      if password != nil { try checkPassword(room) }
    }
  }

  @Test func pythonReadsOurs() throws {
    let room = try filled()
    made(room)
    let program = """
      import zipfile
      archive = zipfile.ZipFile('made.zip')
      assert archive.testzip() is None
      archive.extractall('copy')
      """
    let run = try room.run("python3", "-c", program)
    #expect(run.status == 0, "\(run.output)")
    try checkCopy(room, at: "copy")
  }
}
