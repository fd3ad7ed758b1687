import HTTPRules
import NIOCore

/// The first and the last bytes of a body that is being received, which may be gone from memory
/// when its end is judged.
struct BodyEdges: Sendable {
    private var first: [UInt8] = []
    private var last: [UInt8] = []
    private var bytes: UInt64 = 0

    mutating func append(_ piece: ByteBuffer) {
        let count = ImageCompleteness.edgeBytes
        bytes += UInt64(piece.readableBytes)
        if first.count < count {
            first += piece.readableBytesView.prefix(count - first.count)
        }
        // By its place: the general suffix goes through all that comes before.
        let end = min(count, piece.readableBytes)
        last += piece.getBytes(at: piece.writerIndex - end, length: end) ?? []
        if last.count > count { last.removeFirst(last.count - count) }
    }

    /// Whether the body so far ends as its format says.
    var completeness: ImageCompleteness { ImageCompleteness(first: first, last: last, size: bytes) }
}
