import Foundation
import TestKit
import Testing
import ZipArchive

@Suite(.ownThread) struct LargeArchiveTests {
  /// More entries than fit in 16 bits.
  @Test func manyEntries() throws {
    let room = try Room()
    let program = """
      import zipfile
      with zipfile.ZipFile('made.zip', 'w') as archive:
        for number in range(65_600): archive.writestr(f'{number % 100}/{number}', b'')
      """
    let run = try room.run("python3", "-c", program)
    #expect(run.status == 0, "\(run.output)")
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.names("out")?.count == 65_700)
    var limits = SSZipArchiveLimits()
    limits.entryCountMax = 65_599
    #expect(extract(room.path("made.zip"), in: room, limits: limits)?.archiveCode == .tooManyEntries)
  }

  /// A small entry whose sizes are in the 64-bit extra field.
  @Test func sizesOf64Bits() throws {
    let room = try Room()
    let program = """
      import zipfile
      with zipfile.ZipFile('made.zip', 'w') as archive:
        with archive.open(zipfile.ZipInfo('a'), 'w', force_zip64=True) as file: file.write(b'hello')
      """
    let run = try room.run("python3", "-c", program)
    #expect(run.status == 0, "\(run.output)")
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.text("out/a") == "hello")
  }

  /// A file of more than 4 GiB, which is sparse. Only the sizes are read back: its contents would fill the disk.
  @Test func aLargeFile() throws {
    let room = try Room()
    let size = 1 << 32 + 5
    #expect(try room.run("truncate", "-s", "\(size)", "large").status == 0)
    let archive = SSZipArchive(path: room.path("made.zip"))
    #expect(archive.open())
    #expect(
      archive.writeFile(
        atPath: room.path("large"), withFileName: nil, compressionLevel: 1, password: nil, aes: false))
    #expect(archive.close())
    #expect(SSZipArchive.payloadSizeForArchive(atPath: room.path("made.zip"), error: nil).intValue == size)
    let program = "import zipfile; print(zipfile.ZipFile('made.zip').infolist()[0].file_size)"
    #expect(try room.run("python3", "-c", program).output == "\(size)\n")
    // The ratio is refused before a byte is written.
    var limits = SSZipArchiveLimits()
    limits.expansionMax = 100
    #expect(extract(room.path("made.zip"), in: room, limits: limits)?.archiveCode == .expansionTooLarge)
  }
}
