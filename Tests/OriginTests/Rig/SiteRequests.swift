import Harness
import NIOCore
import Origin
import Wire

/// A request for a site whose origin is on a local port.
func siteRequest(
    _ port: UInt16, _ method: RequestMethod = .get, host: String = "127.0.0.1",
    body: RequestBodyFraming = .none, isSafeToRetry: Bool? = nil
) -> OriginFetchRequest {
    OriginFetchRequest(
        origin: OriginAuthority(host: host, port: port), method: method,
        head: Array("\(method.text) /a?b HTTP/1.1\r\nHost: site.example\r\nX: y\r\n".utf8),
        body: body, isSafeToRetry: isSafeToRetry ?? (method == .get || method == .head))
}

/// Sends pieces of a request's body when the fetch accepts them; for its loop only.
final class BodyGiver {
    private let fetch: OriginFetch
    private var pieces: ArraySlice<ByteBuffer>
    private let trailers: Trailers
    private(set) var bytesGiven = 0
    private(set) var isOver = false

    init(_ fetch: OriginFetch, _ pieces: [ByteBuffer], trailers: Trailers = Trailers()) {
        self.fetch = fetch
        self.pieces = pieces[...]
        self.trailers = trailers
    }

    /// Pieces for a body of `count` bytes in total.
    static func flood(_ count: Int) -> [ByteBuffer] {
        stride(from: 0, to: count, by: ByteOrigin.block.readableBytes).compactMap { start in
            ByteOrigin.block.getSlice(
                at: 0, length: min(ByteOrigin.block.readableBytes, count - start))
        }
    }

    func give() {
        while !isOver, fetch.isWritable {
            guard let piece = pieces.popFirst() else {
                isOver = true
                fetch.endBody(trailers: trailers)
                return
            }
            bytesGiven += piece.readableBytes
            fetch.send(body: piece)
        }
    }
}
