import HTTPRules
import NIOCore
import Origin
import Wire

/// The body of a request on its way to the origin.
extension OriginSource {
    /// A request and the first of its body: a client that takes its time for that holds no
    /// connection meanwhile.
    struct Beginning {
        let request: OriginFetchRequest
        /// One buffer, however small the pieces are that it came in.
        var body = ByteBuffer()

        static let bytesMax = 64 << 10
    }

    /// Pieces of the request's body are to wait.
    var isFull: Bool { fetch.map { $0.wantsBody && !$0.takesMore } ?? false }

    func send(_ piece: ByteBuffer) {
        guard beginning != nil else {
            fetch?.send(body: piece)
            return
        }
        beginning?.body.writeImmutableBuffer(piece)
        if beginning?.body.readableBytes ?? 0 > Beginning.bytesMax { sendBeginning() }
    }

    func endBody(_ trailers: Trailers) {
        sendBeginning()
        let section = query.plan.requestRules.trailers(trailers.lines, in: trailers.bytes.span)
        fetch?.endBody(trailers: Trailers(section) ?? Trailers())
    }

    private func sendBeginning() {
        guard let beginning else { return }
        self.beginning = nil
        begin(beginning.request)
        fetch?.send(body: beginning.body)
    }

    func originTakesMore() {
        door?.uploadGoesOn(for: self)
    }

    func begin(_ request: OriginFetchRequest) {
        fetch = hall.origin.fetch(request, to: self)
    }
}
