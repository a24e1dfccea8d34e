import Foundation
import Larkspur
import Testing

/// Settings of other platforms: what is set is what is read, in copies as well.
@Suite struct KeptValueTests {
  @Test func ofRequests() throws {
    var request = URLRequest(url: try #require(URL(string: "http://a.example/")))
    #expect(request.attribution == .developer)
    #expect(!request.requiresDNSSECValidation && !request.allowsPersistentDNS && !request.assumesHTTP3Capable)
    #expect(request.cookiePartitionIdentifier == nil)
    let before = request
    request.attribution = .user
    request.requiresDNSSECValidation = true
    request.allowsPersistentDNS = true
    request.assumesHTTP3Capable = true
    request.cookiePartitionIdentifier = "x"
    #expect(before.attribution == .developer && before.cookiePartitionIdentifier == nil)
    let object = request as NSURLRequest
    #expect(object.attribution == .user && object.requiresDNSSECValidation && object.allowsPersistentDNS)
    #expect(object.assumesHTTP3Capable && object.cookiePartitionIdentifier == "x")
    let mutable = try #require(object.mutableCopy() as? NSMutableURLRequest)
    mutable.attribution = .developer
    mutable.requiresDNSSECValidation = false
    mutable.allowsPersistentDNS = false
    mutable.assumesHTTP3Capable = false
    mutable.cookiePartitionIdentifier = nil
    #expect(mutable as URLRequest == before)
    #expect(object.attribution == .user)
  }

  @Test func ofConfigurations() throws {
    let configuration = URLSessionConfiguration.ephemeral
    #expect(configuration.multipathServiceType == .none && !configuration.requiresDNSSECValidation)
    configuration.multipathServiceType = .handover
    configuration.requiresDNSSECValidation = true
    let copy = URLSession(configuration: configuration).configuration
    #expect(copy.multipathServiceType == .handover && copy.requiresDNSSECValidation)
  }

  @Test func ofTasks() throws {
    let session = URLSession(configuration: .ephemeral)
    let url = try #require(URL(string: "http://a.example/"))
    let task = session.dataTask(with: url)
    #expect(task.prefersIncrementalDelivery)
    #expect(!session.dataTask(with: url) { _, _, _ in }.prefersIncrementalDelivery)
    #expect(!session.downloadTask(with: url).prefersIncrementalDelivery)
    task.prefersIncrementalDelivery = false
    #expect(!task.prefersIncrementalDelivery)
    task.cancel()
  }
}
