import Logging

extension Hall {
    /// An answer has more tags than are kept: a purge by those will not find it.
    func noteCut(_ count: Int, of key: [UInt8]) {
        node.logger.warning(
            "tags left out: too many or too long",
            metadata: ["url": "\(String(decoding: key, as: UTF8.self))", "tags": "\(count)"])
    }
}
