import LarkspurIO

/// The listening thread: accepts connections and gives each a thread.
func acceptConnections(_ listener: BlockingListener, _ core: ServerCore) {
  while !core.isStopping {
    let socket: BlockingSocket
    do {
      socket = try listener.accept()
    } catch .tooManyDescriptors, .tooManyDescriptorsInSystem, .noMemory, .noBufferSpace {
      // Descriptors come back when anybody in the process closes one, which nobody tells us: look again soon. The
      // connection waits in the kernel's queue meanwhile.
      if !core.pause(until: core.deadline(after: .milliseconds(10))) { return }
      continue
    } catch {
      // Shut down by `stop`. Anything else is not to happen, and nothing could be done about it.
      if !core.isStopping { core.fail("the server does not accept connections any more: \(error)") }
      return
    }
    startConnection(socket, core)
  }
}

private func startConnection(_ socket: BlockingSocket, _ core: ServerCore) {
  guard let (number, script) = core.connectionAccepted(socket) else { return }
  let started = core.startThread("test-server-\(number)") { core in
    Connection(number, core).run(socket, script)
    core.connectionClosed()
  }
  if !started {
    core.forgetSocket(number)
    core.connectionClosed()
    core.fail("connection \(number): no thread could be started for it")
  }
}
