import NIOCore
import NIOEmbedded
import NIOHTTP1

/// The same bytes as read by llhttp, through NIOHTTP1.
///
/// NIOHTTP1 differs from llhttp in these points: it decodes bytes as UTF-8 with repair, refuses an
/// empty field name and any version that is not 1.x, lets the request determine whether a response
/// has a body, and drops the `end` of an interim response. llhttp itself includes white space at
/// the end of a value, which is removed here.
struct Reference {
    struct Message {
        /// Method and target, or the status in decimal.
        var start: String
        var isHTTP10: Bool
        var fields: [(name: String, value: String)]
        var isPersistent: Bool
        var body: [UInt8] = []
        var isWhole = false
    }

    var messages: [Message] = []
    /// The error that ended the reading before the connection did.
    var error: (any Error)?

    var heads: Int { messages.count }
    var whole: Int { messages.count { $0.isWhole } }

    static func requests(_ bytes: [UInt8]) throws -> Reference {
        let channel = EmbeddedChannel(
            handler: ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)))
        var reference = Reference()
        do { try channel.writeInbound(ByteBuffer(bytes: bytes)) } catch { reference.error = error }
        while let part = try channel.readInbound(as: HTTPServerRequestPart.self) {
            switch part {
            case .head(let head):
                reference.messages.append(
                    Message(
                        start: head.method.rawValue + " " + head.uri,
                        isHTTP10: head.version == .http1_0, fields: fields(head.headers),
                        isPersistent: head.isKeepAlive))
            case .body(let buffer): reference.add(buffer)
            case .end: reference.messages[reference.messages.count - 1].isWhole = true
            }
        }
        _ = try? channel.finish(acceptAlreadyClosed: true)
        return reference
    }

    static func responses(_ bytes: [UInt8], requestIsHead: Bool) throws -> Reference {
        let decoder = HTTPResponseDecoder(
            leftOverBytesStrategy: .dropBytes, informationalResponseStrategy: .forward)
        let channel = EmbeddedChannel(handler: ByteToMessageHandler(decoder))
        for _ in 0..<8 {
            let head = HTTPRequestHead(
                version: .http1_1, method: requestIsHead ? .HEAD : .GET, uri: "/")
            try channel.writeOutbound(HTTPClientRequestPart.head(head))
        }
        var reference = Reference()
        do { try channel.writeInbound(ByteBuffer(bytes: bytes)) } catch { reference.error = error }
        _ = try? channel.finish(acceptAlreadyClosed: true)
        while let part = try channel.readInbound(as: HTTPClientResponsePart.self) {
            switch part {
            case .head(let head):
                reference.messages.append(
                    Message(
                        start: "\(head.status.code)", isHTTP10: head.version == .http1_0,
                        fields: fields(head.headers), isPersistent: head.isKeepAlive,
                        isWhole: (100..<200).contains(head.status.code)))
            case .body(let buffer): reference.add(buffer)
            case .end: reference.messages[reference.messages.count - 1].isWhole = true
            }
        }
        return reference
    }

    private mutating func add(_ buffer: ByteBuffer) {
        messages[messages.count - 1].body += Array(buffer.readableBytesView)
    }

    private static func fields(_ headers: HTTPHeaders) -> [(name: String, value: String)] {
        headers.map { name, value in
            var bytes = Array(value.utf8)
            while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
            return (name, String(decoding: bytes, as: UTF8.self))
        }
    }
}
