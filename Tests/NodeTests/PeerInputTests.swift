import Cluster
import Ground
import NIOCore
import Peering
import Testing

@Suite("The input of a connection with a peer")
struct PeerInputTests {
    private static func hello(_ number: UInt64) -> Hello {
        Hello(
            member: Member(
                id: NodeID(low: number, high: 0), process: ProcessID(high: 0, low: number),
                address: PeerAddress(host: "127.0.0.1", port: 8082), weight: 1, versions: 1...1,
                role: []), incarnation: Incarnation(epoch: 1, count: 0))
    }

    /// Returns the events of `bytes` that arrive in parts of `size`, and the fault that ended them.
    private func events(_ bytes: [UInt8], inPartsOf size: Int) -> ([PeerEvent], PeerFault?) {
        var (input, link) = (PeerInput(), PeerLink(.accepting, hello: Self.hello(1)))
        var events: [PeerEvent] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            input.append(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
            do throws(PeerFault) {
                while let part = try input.next(&link) {
                    if case .event(let event) = part { events.append(event) }
                }
            } catch {
                return (events, error)
            }
            input.discardReadBytes()
        }
        return (events, nil)
    }

    /// The frames of HELLO, a message of gossip and GOODBYE.
    private var conversation: [UInt8] {
        Self.hello(2).frame + Gossip(.nack(sequence: 7)).frames.flatMap(\.self)
            + Goodbye(.leaving).frame
    }

    @Test("Frames are found however their bytes are divided")
    func division() {
        for size in 1...conversation.count {
            let (events, fault) = events(conversation, inPartsOf: size)
            #expect(
                events == [
                    .helloReceived(Self.hello(2), version: 1),
                    .gossipReceived(Gossip(.nack(sequence: 7))),
                    .goodbyeReceived(Goodbye(.leaving)),
                ])
            #expect(fault == nil)
        }
    }

    @Test("A frame is not processed before its last byte has arrived")
    func incomplete() {
        let frame = Self.hello(2).frame
        #expect(events(frame.dropLast(), inPartsOf: frame.count).0 == [])
    }

    @Test("An invalid header ends the input after the frames before it")
    func invalidHeader() {
        let bytes = Self.hello(2).frame + [UInt8](repeating: 0xFF, count: 64)
        for size in [1, 5, bytes.count] {
            let (events, fault) = events(bytes, inPartsOf: size)
            #expect(events == [.helloReceived(Self.hello(2), version: 1)])
            #expect(fault != nil)
        }
    }
}

@Suite("Queries that wait until this node has caught up")
struct CatchUpQueueTests {
    private let peers = [NodeID(low: 1, high: 0), NodeID(low: 2, high: 0)]

    @Test("A query is ready once this node is not behind its sender, and only once")
    func ready() {
        var queue = CatchUpQueue()
        for peer in peers + peers { queue.add({}, for: peer, now: .zero, within: .seconds(5)) }
        #expect(queue.takeReady { _ in true }.isEmpty)
        #expect(queue.takeReady { $0 == peers[0] }.count == 2)
        #expect(queue.takeReady { $0 == peers[0] }.isEmpty)
        #expect(queue.takeReady { _ in false }.count == 2)
    }

    @Test("A query whose time has passed is dropped when another arrives")
    func dropped() {
        var queue = CatchUpQueue()
        queue.add({}, for: peers[0], now: .zero, within: .seconds(5))
        queue.add({}, for: peers[0], now: .zero + .seconds(5), within: .seconds(5))
        #expect(queue.takeReady { _ in false }.count == 1)
    }
}
