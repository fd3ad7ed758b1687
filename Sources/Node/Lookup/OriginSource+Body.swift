import HTTPRules
import NIOCore
import Origin
import Wire

/// The body of a request on its way to the origin.
extension OriginSource {
    /// A request and the first of its body: a client that takes its time for that holds no
    /// connection meanwhile.
    struct DeferredRequest {
        let request: OriginFetchRequest
        /// One buffer, however small the pieces are that it came in.
        var body = ByteBuffer()

        static let bytesMax = 64 << 10
    }

    /// Pieces of the request's body are to wait.
    var isFull: Bool { originFetch.map { $0.acceptsBody && !$0.isWritable } ?? false }

    func send(_ piece: ByteBuffer) {
        guard deferredRequest != nil else {
            originFetch?.send(body: piece)
            return
        }
        deferredRequest?.body.writeImmutableBuffer(piece)
        if deferredRequest?.body.readableBytes ?? 0 > DeferredRequest.bytesMax {
            sendDeferredRequest()
        }
    }

    func endBody(_ trailers: Trailers) {
        sendDeferredRequest()
        let section = siteRequest.policy.requestFieldRules.trailers(
            trailers.lines, in: trailers.bytes.span)
        originFetch?.endBody(trailers: Trailers(section) ?? Trailers())
    }

    private func sendDeferredRequest() {
        guard let deferredRequest else { return }
        self.deferredRequest = nil
        startOriginFetch(deferredRequest.request)
        originFetch?.send(body: deferredRequest.body)
    }

    func originAcceptsMoreBody() {
        handler?.uploadResumed(for: self)
    }

    func startOriginFetch(_ request: OriginFetchRequest) {
        originFetch = context.origin.fetch(request, to: self)
    }
}
