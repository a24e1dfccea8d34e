import Foundation
import TestKit
import Testing
import ZipArchive

/// Hostile archives behind a program, made by a script: an error or the right contents, and nothing outside.
@Suite(.ownThread) struct HostilePrefixTests {
  /// Writes archives into the directory `made`. Those that are refused have names with `bad`.
  private static let script = """
    import os, struct, zipfile
    os.makedirs('made')
    def archive(entries):
      with zipfile.ZipFile('x.zip', 'w') as z:
        for name, text, mode in entries:
          info = zipfile.ZipInfo(name)
          info.create_system, info.external_attr = 3, mode << 16
          z.writestr(info, text)
      return open('x.zip', 'rb').read()
    def write(name, data):
      with open('made/' + name, 'wb') as f: f.write(data)
    FILE, LINK = 0o100644, 0o120777
    program = b'#!/bin/sh\\nexit 0\\n' + bytes(500)
    good = archive([('a', 'text', FILE)])
    write('good', program + good)
    for number, entries in enumerate([
      [('a', 'x', FILE), ('l', '/etc', LINK)], [('l', '..', LINK)], [('d/l', '../..', LINK)], [('l', 'a/..', LINK)],
      [('l', '.', LINK), ('l/a', 'x', FILE)], [('README', '1', FILE), ('readme', '2', FILE)],
      [('\\u00e4', '1', FILE), ('a\\u0308', '2', FILE)], [('D/a', '1', FILE), ('d/b', '2', FILE)],
      [('../a', 'x', FILE)], [('/a', 'x', FILE)], [('c:a', 'x', FILE)], [('p', '', 0o010644)], [('s', '', 0o140644)],
    ]):
      write('bad%d' % number, program + archive(entries))
    # 64-bit records whose numbers overflow, or lead before the file.
    end = good[-22:]
    size, offset = struct.unpack('<II', end[12:20])
    for number, (size64, offset64) in enumerate([
      (size, 2**64 - 1), (2**64 - 1, offset), (2**64 - 1, 2**64 - 1), (2**63, 2**63), (size, 2**63 + offset),
      (2**64 - size, size), (0, 2**64 - 518), (len(program) + offset + size, 1),
    ]):
      record = b'PK\\6\\6' + struct.pack('<QHHIIQQQQ', 44, 45, 45, 0, 0, 1, 1, size64, offset64)
      locator = b'PK\\6\\7' + struct.pack('<IQI', 0, len(good) - 22, 1)
      saturated = end[:8] + b'\\xff' * 12 + end[20:]
      write('bad64-%d' % number, program + good[:-22] + record + locator + saturated)
    # Places of entries that leave the archive when the program's size is added, and fields that are cut off.
    for number, place in enumerate([2**32 - 1, 2**32 - len(program), 2**31, len(good), len(program) + len(good)]):
      data = bytearray(program + good)
      at = data.rindex(b'PK\\1\\2') + 42
      data[at:at + 4] = struct.pack('<I', place)
      write('bad-place%d' % number, bytes(data))
    for number, field in enumerate([b'UT', b'UT\\5', b'UT\\5\\0', b'UT\\xff\\xff\\1', b'UT\\5\\0\\1\\0']):
      with zipfile.ZipFile('x.zip', 'w') as z:
        info = zipfile.ZipInfo('a')
        info.extra = bytes(len(field))
        z.writestr(info, 'text')
      data = open('x.zip', 'rb').read()
      write('any-field%d' % number, program + data.replace(b'a' + bytes(len(field)), b'a' + field))
    """

  @Test func archivesOfAScript() throws {
    let room = try Room()
    let run = try room.run("python3", "-c", Self.script)
    #expect(run.status == 0, "\(run.output)")
    let names = try #require(room.names("made"))
    #expect(names.count == 32)
    let before = room.names("")
    for name in names {
      let error = extract(room.path("made/" + name), in: room)
      #expect(error == nil || error?.domain == SSZipArchiveErrorDomain, "\(name)")
      #expect((error == nil) == (name == "good") || name.hasPrefix("any"), "\(name): \(String(describing: error))")
      if error == nil {
        #expect(room.names("out") == ["a"] && room.text("out/a") == "text", "\(name)")
        try FileManager.default.removeItem(atPath: room.path("out"))
      }
      #expect(room.names("") == before, "\(name)")
    }
  }
}
