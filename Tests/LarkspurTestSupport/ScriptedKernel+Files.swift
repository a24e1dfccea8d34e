import LarkspurBytes
import LarkspurIO

/// Files and pipes in memory.
extension ScriptedKernel {
  struct File {
    var contents: [UInt8] = []
    /// Writes past this size fail, as on a full disk.
    var bytesMax = Int.max
    var takesSplices = true
    var givesSplices = true
    var faults: [Errno] = []
    /// Contents that replace the present ones after `calls` more calls that access the file.
    var change: (calls: Int, contents: [UInt8])?
    /// The number of such changes: the time of the last modification.
    var changeCount: Int64 = 0

    mutating func look() -> Errno? {
      if let change {
        self.change = change.calls > 0 ? (change.calls - 1, change.contents) : nil
        if change.calls == 0 {
          contents = change.contents
          changeCount += 1
        }
      }
      return faults.isEmpty ? nil : faults.removeFirst()
    }
  }

  package func makeFile(_ contents: [UInt8] = []) -> ScriptedFile {
    with { state in
      state.files.append(File(contents: contents))
      let descriptor = state.open(.file(state.files.count - 1))
      return ScriptedFile(kernel: self, index: state.files.count - 1, descriptor: descriptor)
    }
  }

  package func willFailToOpenPipe(_ errors: Errno...) { with { $0.pipeFaults += errors } }
  package func setPipeBytesMax(_ bytes: Int) { with { $0.pipeBytesMax = bytes } }
  package var openPipes: Int {
    with { state in
      state.descriptors.values.count { if case .pipe = $0 { true } else { false } } / 2
    }
  }

  // MARK: - Kernel

  package func fileStatus(_ file: Int32, _ status: inout FileStatus) -> Int {
    called()
    var present = FileStatus()
    defer { status = present }
    return with { state in
      state.withFile(file, "fileStatus") { file in
        present.size = file.contents.count
        present.modificationSeconds = file.changeCount
        return 0
      }
    }
  }

  package func sendFile(_ file: Int32, at offset: Int, count: Int, to descriptor: Int32) -> Int {
    called()
    let offered: Result<[UInt8], Errno> = with { state in
      state.counts.sentFiles += 1
      var bytes: [UInt8] = []
      let result = state.withFile(file, "sendFile") { file in
        guard file.givesSplices else { return -Int(Errno.invalidArgument.rawValue) }
        bytes = Array(file.contents.dropFirst(offset).prefix(count))
        return bytes.count
      }
      return result < 0 ? .failure(Errno(rawValue: Int32(-result))) : .success(bytes)
    }
    switch offered {
    case .success(let bytes): return bytes.isEmpty ? 0 : send(descriptor, offered: bytes)
    case .failure(let error): return -Int(error.rawValue)
    }
  }

  package func readFile(_ file: Int32, at offset: Int?, into buffer: inout OutputRawSpan) -> Int {
    called()
    let room = buffer.freeCapacity
    let (result, bytes): (Int, [UInt8]) = with { state in
      state.counts.fileCopies += 1
      if room == 0 { state.offences.append("a read without room, which looks like the end") }
      var bytes: [UInt8] = []
      if let offset {
        let result = state.withFile(file, "readFile") { file in
          bytes = Array(file.contents.dropFirst(offset).prefix(room))
          return bytes.count
        }
        return (result, bytes)
      }
      guard case .pipe(let pipe) = state.descriptors[file] else {
        state.offences.append("readFile on \(file), which is no pipe")
        return (-Int(Errno.badDescriptor.rawValue), [])
      }
      bytes = Array(state.pipes[pipe].prefix(room))
      state.pipes[pipe].removeFirst(bytes.count)
      return (bytes.isEmpty ? -Int(Errno.wouldBlock.rawValue) : bytes.count, bytes)
    }
    for byte in bytes { buffer.append(byte, as: UInt8.self) }
    return result
  }

  package func writeFile(_ file: Int32, _ bytes: Span<UInt8>) -> Int {
    called()
    var offered: [UInt8] = []
    offered.append(copying: bytes)
    let list = offered
    return with { state in
      state.counts.fileCopies += 1
      return state.withFile(file, "writeFile") { $0.append(list) }
    }
  }

  package func openPipe() -> (reading: Int32, writing: Int32) {
    called()
    return with { state in
      if !state.pipeFaults.isEmpty {
        let error = -state.pipeFaults.removeFirst().rawValue
        return (error, error)
      }
      state.pipes.append([])
      let kind = Kind.pipe(state.pipes.count - 1)
      return (state.open(kind), state.open(kind))
    }
  }

  package func splice(from source: Int32, to target: Int32, count: Int) -> Int {
    called()
    return with { state in
      state.counts.splices += 1
      switch (state.descriptors[source], state.descriptors[target]) {
      case (.socket, .pipe(let pipe)):
        let (result, bytes) = state.take(
          from: source, min(count, state.pipeBytesMax - state.pipes[pipe].count), "splice")
        state.pipes[pipe] += bytes
        return result
      case (.pipe(let pipe), .file):
        let bytes = Array(state.pipes[pipe].prefix(count))
        let result = state.withFile(target, "splice") { file in
          file.takesSplices ? file.append(bytes) : -Int(Errno.invalidArgument.rawValue)
        }
        state.pipes[pipe].removeFirst(max(result, 0))
        return result
      default:
        state.offences.append("a splice from \(source) to \(target)")
        return -Int(Errno.badDescriptor.rawValue)
      }
    }
  }
}

extension ScriptedKernel.File {
  fileprivate mutating func append(_ bytes: [UInt8]) -> Int {
    let count = min(bytes.count, bytesMax - contents.count)
    guard count > 0 || bytes.isEmpty else { return -Int(Errno.noSpace.rawValue) }
    contents += bytes.prefix(count)
    return count
  }
}

extension ScriptedKernel.State {
  fileprivate mutating func withFile(
    _ descriptor: Int32, _ call: String, _ body: (inout ScriptedKernel.File) -> Int
  ) -> Int {
    guard case .file(let index) = descriptors[descriptor] else {
      offences.append("\(call) on \(descriptor), which is no open file")
      return -Int(Errno.badDescriptor.rawValue)
    }
    if let error = files[index].look() { return -Int(error.rawValue) }
    return body(&files[index])
  }
}

/// A file of a scripted kernel, which stays open.
package struct ScriptedFile: Sendable {
  let kernel: ScriptedKernel
  let index: Int
  let descriptor: Int32

  package var openFile: OpenFile { OpenFile(lent: descriptor) }
  package var contents: [UInt8] { kernel.with { $0.files[index].contents } }

  private func change(_ body: (inout ScriptedKernel.File) -> Void) {
    kernel.with { body(&$0.files[index]) }
  }

  /// Makes the next calls fail.
  package func willFail(_ errors: Errno...) { change { $0.faults += errors } }
  /// Makes the disk full once the file has this size.
  package func setBytesMax(_ bytes: Int) { change { $0.bytesMax = bytes } }
  /// Makes `splice` into the file and `sendfile` from it fail.
  package func refuseSplices() {
    change {
      $0.takesSplices = false
      $0.givesSplices = false
    }
  }
  /// Replaces the contents after `calls` more calls, as another process would.
  package func willBecome(_ contents: [UInt8], after calls: Int = 0) { change { $0.change = (calls, contents) } }
}
