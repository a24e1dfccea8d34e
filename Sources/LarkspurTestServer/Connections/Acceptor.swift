import LarkspurIO

/// Accepts connections and starts a thread for each. Runs on the listening thread.
func acceptConnections(_ listener: BlockingListener, _ core: ServerCore) {
  while !core.isStopping {
    do {
      startConnection(try listener.accept(), core)
    } catch .tooManyDescriptors, .tooManyDescriptorsInSystem, .noMemory, .noBufferSpace {
      // Any part of the process may close a descriptor, and no event reports it, so the thread retries every 10 ms.
      // Until then the connection waits in the kernel's queue.
      if !core.pause(until: core.deadline(after: .milliseconds(10))) { return }
    } catch {
      // `stop` has shut the listener down. Any other error is unexpected and cannot be handled.
      if !core.isStopping { core.fail("the server does not accept connections any more: \(error)") }
      return
    }
  }
}

/// Gives the socket to `core`, its only owner, so that a script's close really closes the socket.
private func startConnection(_ socket: consuming BlockingSocket, _ core: ServerCore) {
  guard let (number, script) = core.connectionAccepted(socket) else { return }
  let started = core.startThread("test-server-\(number)") { core in
    Connection(number, core).run(script)
    core.connectionClosed()
  }
  if !started {
    core.forgetSocket(number)
    core.connectionClosed()
    core.fail("connection \(number): no thread could be started for it")
  }
}
