/// The names of Larkspur's own modules, which are also the names of their targets.
package enum OwnModules {
  package static let names: Set<String> = [
    "AFNetworking", "AFNetworkingXML", "CLarkspurLinux", "CLarkspurOpenSSL", "CLarkspurScan", "CLarkspurTestServer",
    "CLarkspurZip", "FoundationNetworking", "Larkspur", "LarkspurBytes", "LarkspurCoding",
    "LarkspurCommand", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS", "LarkspurTestServer",
    "LarkspurConsole", "LarkspurDemonstration",
    "LarkspurTransferServer", "LarkspurTransfers", "LarkspurTransport", "ZipArchive",
  ]
}
