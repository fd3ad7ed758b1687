import Ground
import NIOCore
import Wire

/// Plaintext that is to be encrypted: small pieces are copied side by side, as they would be into a
/// record; large ones are kept by reference.
struct PlaintextBuffer {
    /// What comes before ``tail``.
    private var pieces: [ByteBuffer] = []
    private var tail = ByteBuffer()

    /// A piece of this size fills a record by itself.
    private static let referenceBytesMin = 16 << 10
    /// More room is not kept from one time to the next.
    private static let retainedBytesMax = 64 << 10

    mutating func append(_ bytes: [UInt8]) {
        tail.writeBytes(bytes)
    }

    mutating func append(_ bytes: InlineArray<12, UInt8>) {
        for index in bytes.indices { tail.writeInteger(bytes[index]) }
    }

    mutating func append(_ piece: ByteBuffer) {
        guard piece.readableBytes >= Self.referenceBytesMin else {
            tail.writeImmutableBuffer(piece)
            return
        }
        endTail()
        pieces.append(piece)
    }

    private mutating func endTail() {
        guard tail.readableBytes > 0 else { return }
        pieces.append(tail)
        tail = ByteBuffer()
    }

    /// Encrypts everything, and is empty again.
    mutating func write(to session: TLSSession, now: Instant) {
        if pieces.isEmpty {
            session.write(tail, now: now)
        } else {
            endTail()
            session.write(pieces, now: now)
            pieces.removeAll()
        }
        if tail.capacity > Self.retainedBytesMax { tail = ByteBuffer() } else { tail.clear() }
    }
}
