import Ground
import HTTPRules
import NIOCore
import Telemetry
import Wire

/// A request's body on its way to an origin.
struct Upload {
    var decoder: BodyDecoder
    /// The fetch that takes it; nil before it has begun.
    var fetch: SiteFetch?
}

extension Door {
    /// The body of the request that the parser holds follows, and goes to the origin as it comes.
    func beginUpload() {
        upload = Upload(decoder: BodyDecoder(parser.framing, keepsTrailers: true))
        if parser.expectsContinue {
            write(ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n"))
        }
    }

    /// Gives the origin what `bytes` hold of the body from `start` on; the offset behind what was
    /// used.
    func uploadBody(_ bytes: Span<UInt8>, from start: Int, now: Instant) -> Int {
        var position = start
        while var upload, let fetch = upload.fetch {
            let step = upload.decoder.next(bytes, from: position)
            self.upload = upload
            switch step {
            case .data(let extent, let next):
                position = next
                deadline = now + settings.bodyTimeout
                fetch.send(ByteBuffer(bytes: bytes.copy(extent.range)))
            case .needsMore:
                return bytes.count
            case .end(let next):
                self.upload = nil
                deadline = now + settings.waitTimeout
                fetch.endBody(upload.decoder.trailers)
                return next
            case .refused(let refusal):
                hall.counters.add(.requestsMalformed)
                if case .head? = waiting?.stage {
                    fail(with: .malformedBody(refusal))
                } else {
                    breakOff()
                }
                return bytes.count
            }
        }
        return position
    }

    /// The origin takes more of the body.
    func uploadGoesOn(for fetch: SiteFetch) {
        guard upload?.fetch === fetch else { return }
        consumeInput()
        // What it was sending will never be whole.
        if hasInputEnded, upload?.fetch === fetch, input.readableBytes == 0 { return breakOff() }
        resumeReading()
        flush()
    }

    /// The answer is over before the request's body is: nothing more of the connection can be read
    /// as a request.
    func abandonUpload() {
        guard let left = upload else { return }
        upload = nil
        left.fetch?.cancel()
        closesAfterAnswer = true
    }
}

extension Door {
    /// Passes an interim answer of the origin's on to the client whose request caused `run` (RFC
    /// 9110 §15.2).
    func relayInterim(_ head: AnswerHead, by plan: SitePlan, for run: FillRun) {
        guard let waiting, waiting.run === run, case .head = waiting.stage,
            !waiting.request.isHTTP10, AnswerForwarder.passesInterim(head.status)
        else { return }
        var bytes: [UInt8] = []
        AnswerForwarder.appendInterim(head, rules: plan.answerRules, to: &bytes)
        write(ByteBuffer(bytes: bytes))
        flush()
    }
}
