import Ground
package import HTTPRules
package import NIOCore
package import Wire

/// Takes an answer out of the reads of one connection, one step at a time; used again for the
/// connection's next answer.
///
/// Bytes of an unfinished head are copied together, so that a dripped head does not hold a receive
/// buffer each.
package struct ResponseReader: ~Copyable {
    private enum State: Sendable {
        /// The head, or one interim head after another, is awaited.
        case head
        case body(BodyDecoder)
        /// The answer ended; the next one is not awaited.
        case ended
    }

    private var parser: ResponseParser
    private var state = State.head
    private var requestIsHead = false
    private var keepsTrailers = false
    private var upgrade: [UInt8] = []
    /// The beginning of a head whose end has not come.
    private var partialHead = ByteBuffer()

    /// A reader whose heads have the limits of `settings`.
    package init(settings: OriginSettings) {
        parser = ResponseParser(
            limits: HeadLimits(
                headBytesMax: settings.headBytesMax, fieldsMax: settings.headFieldsMax))
    }

    /// The connection is used for another request, which may be a HEAD, and to whose answer
    /// trailers may be wanted; `upgrade` are the protocols that it may switch to.
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

    /// The next step in `buffer`, which loses the bytes that were taken in.
    ///
    /// After `.needsMore` the buffer is empty. An answer ends where RFC 9112 §6.3 says: what an
    /// origin sends behind it, such as a line end of CGI or the body of a 204, stays in `buffer`.
    /// The answer is whole whichever reads its bytes came in; the connection is of no more use.
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

    private mutating func readHead(_ buffer: inout ByteBuffer) -> ResponseEvent {
        if partialHead.readableBytes > 0 {
            partialHead.writeBuffer(&buffer)
            buffer = partialHead
            partialHead = ByteBuffer()
        }
        guard buffer.readableBytes > 0 else { return .needsMore }
        switch parser.parse(buffer.readableBytesUInt8Span, from: 0, requestIsHead: requestIsHead) {
        case .incomplete:
            // A head that began in a read of its own is copied once; later reads are appended to
            // it.
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
            else { return .refused(.malformed("its body has no such bytes")) }
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

/// What ``ResponseReader`` found.
package enum ResponseEvent: Hashable, Sendable {
    /// Go on with the connection's next read.
    case needsMore
    /// An interim answer (1xx); another head follows.
    case interim(ResponseHead)
    case head(FramedResponseHead)
    /// A piece of the body; it holds on to at most twice its size of memory.
    case body(ByteBuffer)
    /// The fields behind the body, which are not empty; the end follows.
    case trailers(Trailers)
    /// The answer is whole.
    case end
    /// The bytes are no valid answer.
    case refused(OriginFailure)
}

extension ByteBuffer {
    /// The readable bytes in storage of their own.
    fileprivate func copied() -> ByteBuffer {
        var source = self
        var copy = ByteBufferAllocator().buffer(capacity: readableBytes)
        copy.writeBuffer(&source)
        return copy
    }
}
