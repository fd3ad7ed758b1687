import Cluster
import Ground
import Testing

@Suite("A connection's stream numbers are finite, and it reports when they run out")
struct LinkWearTests {
    @Test("Every number is used once, then no query can be sent", arguments: [4, 5])
    func allUsed(lastStream: UInt32) throws {
        for (side, streams) in [
            (PeerLink.Side.dialling, lastStream == 4 ? [1, 3] : [1, 3, 5]), (.accepting, [2, 4]),
        ] as [(PeerLink.Side, [UInt32])] {
            var link = try open(side, lastStream: lastStream)
            for (number, stream) in streams.enumerated() {
                #expect(link.queriesRemaining == UInt64(streams.count - number))
                #expect(try link.sendQuery(PeerSamples.question) == stream)
            }
            #expect(throws: SendError.streamIDsExhausted) {
                try link.sendQuery(PeerSamples.question)
            }
            #expect(link.isOpen && link.outboundQueryCount == streams.count)
        }
    }

    @Test("From the last million on it reports so now and then")
    func reserve() throws {
        let step = UInt32(PeerLink.reserveStep)
        var link = try open(.dialling, lastStream: 2 * (step + 2) - 1)
        let reports = try (0..<4).map { _ in
            _ = try link.sendQuery(PeerSamples.question)
            return link.isNearlyExhausted
        }
        #expect(reports == [false, true, false, false])
        #expect(link.queriesRemaining == UInt64(step) - 2)
        let fresh = try open(.dialling, lastStream: .max)
        #expect(fresh.queriesRemaining == 1 << 31 && !fresh.isNearlyExhausted)
    }

    /// A link that has received the peer's HELLO.
    private func open(_ side: PeerLink.Side, lastStream: UInt32) throws -> PeerLink {
        var link = PeerLink(side, hello: .of(1), lastStream: lastStream)
        let hello = Hello.of(2).frame
        let head = try PeerFrameHeader(hello.span)
        let payload = Array(hello.dropFirst(PeerFrameHeader.bytesCount))
        _ = try link.frameReceived(head, payload: payload.span, now: .zero)
        return link
    }
}
