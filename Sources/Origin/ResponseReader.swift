import Ground
package import HTTPRules
package import NIOCore
package import Wire

/// Extracts one response from the reads of an HTTP/1.1 connection, one event at a time; reused for
/// the connection's next response.
///
/// The bytes of an incomplete head are merged into one buffer, so that a head that arrives in small
/// pieces does not retain one receive buffer for each.
package struct ResponseReader: ~Copyable {
    private enum State: Sendable {
        /// A head, interim or final, is awaited.
        case head
        case body(BodyDecoder)
        /// The response has ended; the next one is not expected yet.
        case ended
    }

    private var parser: ResponseParser
    private var state = State.head
    private var requestIsHead = false
    private var keepsTrailers = false
    private var upgrade: [UInt8] = []
    /// The beginning of an incomplete head.
    private var partialHead = ByteBuffer()

    /// Creates a reader with the head limits of `settings`.
    package init(settings: OriginSettings) {
        parser = ResponseParser(
            limits: HeadLimits(
                headBytesMax: settings.headBytesMax, fieldsMax: settings.headFieldsMax))
    }

    /// Prepares the reader for the response to a request.
    ///
    /// - Parameters:
    ///   - isHead: true if the request is a HEAD.
    ///   - keepsTrailers: true to report trailers.
    ///   - upgrade: the protocols that the response may switch to, as Upgrade lists them.
    package mutating func requestSent(
        isHead: Bool = false, keepsTrailers: Bool = false, upgrade: [UInt8] = []
    ) {
        requestIsHead = isHead
        self.keepsTrailers = keepsTrailers
        self.upgrade = upgrade
        parser.acceptsProtocolSwitch = !upgrade.isEmpty
        parser.reset()
        partialHead.clear()
        state = .head
    }

    /// Returns the next event in `buffer`, and removes the bytes it consumed.
    ///
    /// After `.needsMore` the buffer is empty. A response ends where RFC 9112 §6.3 says: bytes
    /// after it, such as a line end from CGI or the body of a 204, stay in `buffer`. The response
    /// is complete regardless of how its bytes were divided into reads, but the connection cannot
    /// be reused.
    package mutating func next(_ buffer: inout ByteBuffer) -> ResponseEvent {
        switch state {
        case .head: return readHead(&buffer)
        case .body(var decoder):
            let step = readBody(&decoder, &buffer)
            switch step {
            case .end, .trailers: state = .ended
            default: state = .body(decoder)
            }
            return step
        case .ended: return .end
        }
    }

    /// Parses a head; keeps the beginning of an incomplete one until the next read.
    private mutating func readHead(_ buffer: inout ByteBuffer) -> ResponseEvent {
        if partialHead.readableBytes > 0 {
            partialHead.writeBuffer(&buffer)
            buffer = partialHead
            partialHead = ByteBuffer()
        }
        guard buffer.readableBytes > 0 else { return .needsMore }
        switch parser.parse(buffer.readableBytesUInt8Span, from: 0, requestIsHead: requestIsHead) {
        case .incomplete:
            // A head that begins in its own read is copied once; later reads are appended to it.
            partialHead =
                buffer.storageCapacity > 2 * buffer.readableBytes ? buffer.copied() : buffer
            buffer = ByteBuffer()
            return .needsMore
        case .interim(let head, let end):
            buffer.moveReaderIndex(forwardBy: end)
            return .interim(head)
        case .head(let head, let end):
            if head.head.status == 101, !Upgrade.isAcceptance(head.head, requested: upgrade) {
                return .refused(.malformed(ResponseParseError.unexpectedSwitch.message))
            }
            buffer.moveReaderIndex(forwardBy: end)
            state = .body(BodyDecoder(head.framing, keepsTrailers: keepsTrailers))
            return .head(head)
        case .refused(.headTooLarge(let bytesMax)):
            return .refused(.headTooLarge(bytesMax: bytesMax))
        case .refused(let refusal): return .refused(.malformed(refusal.message))
        }
    }

    /// Extracts a piece of the body, its trailers or its end.
    private func readBody(
        _ decoder: inout BodyDecoder, _ buffer: inout ByteBuffer
    ) -> ResponseEvent {
        switch decoder.next(buffer.readableBytesUInt8Span, from: 0) {
        case .needsMore:
            buffer.moveReaderIndex(forwardBy: buffer.readableBytes)
            return .needsMore
        case .data(let extent, let next):
            let start = buffer.readerIndex
            guard
                var piece = buffer.getSlice(
                    at: start + Int(extent.start), length: Int(extent.count))
            else { return .refused(.malformed("its body ends outside the buffer")) }
            buffer.moveReaderIndex(forwardBy: next)
            if 2 * piece.readableBytes < piece.storageCapacity { piece = piece.copied() }
            return .body(piece)
        case .end(let next):
            buffer.moveReaderIndex(forwardBy: next)
            let trailers = decoder.trailers
            return trailers.isEmpty ? .end : .trailers(trailers)
        case .refused(let refusal): return .refused(.malformed(refusal.message))
        }
    }
}

/// An event that a ``ResponseReader`` extracts.
package enum ResponseEvent: Hashable, Sendable {
    /// Continue with the connection's next read.
    case needsMore
    /// An interim response (1xx); another head follows.
    case interim(ResponseHead)
    /// The final response head with the framing of its body.
    case head(FramedResponseHead)
    /// A piece of the body, which retains at most twice its size in memory.
    case body(ByteBuffer)
    /// The trailers after the body, never empty; the end follows.
    case trailers(Trailers)
    /// The response is complete.
    case end
    /// The bytes are not a valid response.
    case refused(OriginFailure)
}

extension ByteBuffer {
    /// Returns the readable bytes in storage of their own.
    fileprivate func copied() -> ByteBuffer {
        var source = self
        var copy = ByteBufferAllocator().buffer(capacity: readableBytes)
        copy.writeBuffer(&source)
        return copy
    }
}
