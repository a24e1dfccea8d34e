import LarkspurEngine
import LarkspurTLS
import LarkspurTransport

extension TLSProvider {
  convenience init(_ storage: URLSessionConfiguration.Storage) {
    var configuration = TLSConfiguration()
    configuration.minimumVersion = storage.settings.tlsMinimum.version
    configuration.maximumVersion = storage.settings.tlsMaximum.version
    storage.trust.apply(to: &configuration)
    let (mismatchReport, fileFailed) = (storage.trust.mismatchReport, storage.trust.fileFailed)
    self.init(configuration, isShareable: storage.trust.isStandard) { [configuration] () throws(TLSError) in
      try Security(configuration, pinMismatched: mismatchReport, fileFailed: fileFailed)
    }
  }
}
