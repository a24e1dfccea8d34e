import Foundation

// The default answers of a delegate that implements neither form of a method. `Task.immediate` starts the async form at
// once, on the calling thread: if the class has no async form, its default implementation has reported that when the
// call returns.

extension URLSessionDelegate {
  public func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    guard ImplementedAsyncMethods.mayBe(.sessionChallenge, in: self) else {
      challenge.methodProbe.isMissing(in: self)
      return completionHandler(.performDefaultHandling, nil)
    }
    Task.immediate {
      let (disposition, credential) = await urlSession(session, didReceive: challenge)
      completionHandler(disposition, credential)
    }
  }

  public func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
  ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
    ImplementedAsyncMethods.isMissing(.sessionChallenge, in: self)
    challenge.methodProbe.isMissing(in: self)
    return (.performDefaultHandling, nil)
  }
}

extension URLSessionTaskDelegate {
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
  ) {
    guard ImplementedAsyncMethods.mayBe(.delayedRequest, in: self) else {
      task.methodProbe.isMissing(in: self)
      return completionHandler(.continueLoading, nil)
    }
    Task.immediate {
      let (disposition, other) = await urlSession(session, task: task, willBeginDelayedRequest: request)
      completionHandler(disposition, other)
    }
  }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
  ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) {
    ImplementedAsyncMethods.isMissing(.delayedRequest, in: self)
    task.methodProbe.isMissing(in: self)
    return (.continueLoading, nil)
  }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    guard ImplementedAsyncMethods.mayBe(.redirection, in: self) else {
      task.methodProbe.isMissing(in: self)
      return completionHandler(request)
    }
    Task.immediate {
      completionHandler(
        await urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request))
    }
  }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest
  ) async -> URLRequest? {
    ImplementedAsyncMethods.isMissing(.redirection, in: self)
    task.methodProbe.isMissing(in: self)
    return request
  }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    guard ImplementedAsyncMethods.mayBe(.challenge, in: self) else {
      challenge.methodProbe.isMissing(in: self)
      return completionHandler(.performDefaultHandling, nil)
    }
    Task.immediate {
      let (disposition, credential) = await urlSession(session, task: task, didReceive: challenge)
      completionHandler(disposition, credential)
    }
  }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
  ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
    ImplementedAsyncMethods.isMissing(.challenge, in: self)
    challenge.methodProbe.isMissing(in: self)
    return (.performDefaultHandling, nil)
  }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    guard ImplementedAsyncMethods.mayBe(.bodyStream, in: self) else {
      return urlSession(session, task: task, needNewBodyStreamFrom: 0, completionHandler: completionHandler)
    }
    Task.immediate {
      let stream = await urlSession(session, needNewBodyStreamForTask: task)
      // The first call of a class may show that it implements another form.
      guard ImplementedAsyncMethods.mayBe(.bodyStream, in: self) else {
        return urlSession(session, task: task, needNewBodyStreamFrom: 0, completionHandler: completionHandler)
      }
      completionHandler(stream)
    }
  }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
    completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    guard ImplementedAsyncMethods.mayBe(.bodyStreamFromOffset, in: self) else {
      task.methodProbe.isMissing(in: self)
      return completionHandler(nil)
    }
    Task.immediate { completionHandler(await urlSession(session, needNewBodyStreamForTask: task, from: offset)) }
  }

  public func urlSession(
    _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64
  ) async -> InputStream? {
    ImplementedAsyncMethods.isMissing(.bodyStreamFromOffset, in: self)
    task.methodProbe.isMissing(in: self)
    return nil
  }

  public func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? {
    ImplementedAsyncMethods.isMissing(.bodyStream, in: self)
    return nil
  }
}

extension URLSessionDataDelegate {
  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    guard ImplementedAsyncMethods.mayBe(.response, in: self) else {
      dataTask.methodProbe.isMissing(in: self)
      return completionHandler(.allow)
    }
    Task.immediate {
      completionHandler(await urlSession(session, dataTask: dataTask, didReceive: response))
    }
  }

  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
  ) async -> URLSession.ResponseDisposition {
    ImplementedAsyncMethods.isMissing(.response, in: self)
    dataTask.methodProbe.isMissing(in: self)
    return .allow
  }

  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
    completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
  ) {
    guard ImplementedAsyncMethods.mayBe(.caching, in: self) else {
      dataTask.methodProbe.isMissing(in: self)
      return completionHandler(proposedResponse)
    }
    Task.immediate {
      completionHandler(await urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse))
    }
  }

  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
  ) async -> CachedURLResponse? {
    ImplementedAsyncMethods.isMissing(.caching, in: self)
    dataTask.methodProbe.isMissing(in: self)
    return proposedResponse
  }
}
