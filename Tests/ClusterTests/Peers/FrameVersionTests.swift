import Cluster
import Ground
import Testing

@Suite("Compatibility with newer versions")
struct FrameVersionTests {
    @Test("A longer fixed part is skipped to its end", arguments: PeerSamples.names)
    func fixedPart(name: String) throws {
        var (frame, kind, bytes) = try PeerSamples.named(name)
        let size = Int(bytes.span.little16(at: 0))
        bytes.insert(contentsOf: [0xFF, 1, 2, 3, 4, 0xFF], at: size)
        (bytes[0], bytes[1]) = (UInt8((size + 6) & 0xFF), UInt8((size + 6) >> 8))
        #expect(try PeerFrame.read(kind, bytes) == frame)
    }

    @Test(
        "An unknown field is skipped, wherever it is", arguments: PeerSamples.names)
    func fields(name: String) throws {
        let (frame, kind, whole) = try PeerSamples.named(name)
        var end = Int(whole.span.little16(at: 0))
        while true {
            var bytes = whole
            bytes.insert(contentsOf: [0xE8, 0x03, 3, 0, 1, 2, 3], at: end)
            #expect(try PeerFrame.read(kind, bytes) == frame, "field at \(end)")
            guard end < whole.count else { break }
            end += 4 + Int(whole.span.little16(at: end + 2))
        }
    }

    @Test("The items of lists may be longer", arguments: ["TOUCHES", "OFFER", "OFFER_ANSWERED"])
    func items(name: String) throws {
        var (frame, kind, bytes) = try PeerSamples.named(name)
        var start = 2
        while start < bytes.count {
            let count = Int(bytes.span.little16(at: start + 2))
            bytes[start + 2] = UInt8(count + 2)
            bytes.insert(contentsOf: [9, 9], at: start + 4 + count)
            start += 4 + count + 2
        }
        #expect(try PeerFrame.read(kind, bytes) == frame)
    }

    @Test("A query from a node without request ids decodes as one without")
    func untraced() throws {
        let frame = PeerFrame.question(PeerSamples.untracedQuestion)
        let bytes = try frame.bytes()
        #expect(try PeerFrame.read(bytes) == frame)
        let named = try PeerFrame.question(PeerSamples.question).bytes()
        // The new part follows everything that the older node reads.
        let head = PeerFrameHeader.bytesCount
        #expect(named[head...].starts(with: bytes[head...]))
    }

    @Test("Of a repeated single field the last one counts")
    func twice() throws {
        var (_, kind, bytes) = try PeerSamples.named("ASK")
        bytes += [1, 0, 2, 0, UInt8(ascii: "h"), UInt8(ascii: "i")]
        guard case .question(let question)? = try PeerFrame.read(kind, bytes) else {
            Issue.record("no query")
            return
        }
        #expect(question.key == Array("hi".utf8))
    }

    @Test("A member record that is not understood is skipped; the others are read")
    func records() throws {
        let other = MemberRecord(PeerSamples.member, Incarnation(epoch: 99, count: 0), .left)
        let gossip = Gossip(.updates([PeerSamples.record, other, PeerSamples.record]))
        let whole = Array(gossip.frames[0].dropFirst(PeerFrameHeader.bytesCount))
        let second = 24 + 4 + Int(whole.span.little16(at: 26)) + 4
        // A state, a weight, a port, versions and a host that no member has.
        let changes: [[(Int, UInt8)]] = [
            [(2, 5)], [(4, 0), (5, 0)], [(6, 0), (7, 0)], [(8, 9)], [(60, 0x20)],
        ]
        for change in changes {
            var bytes = whole
            for (offset, byte) in change { bytes[second + offset] = byte }
            let read = try PeerFrame.read(.gossip, bytes)
            #expect(
                read == .gossip(Gossip(.updates([PeerSamples.record, PeerSamples.record]))),
                "\(change)")
        }
    }

    @Test("Unknown kinds of gossip, queries and frames are skipped")
    func kinds() throws {
        var (_, kind, bytes) = try PeerSamples.named("GOSSIP ping")
        bytes[2] = 7
        #expect(try PeerFrame.read(kind, bytes) == nil)
        (_, kind, bytes) = try PeerSamples.named("ASK")
        bytes[2] = 3
        #expect(try PeerFrame.read(kind, bytes) == nil)
        #expect(try PeerFrame.read(PeerFrameKind(rawValue: 99), [1, 2]) == nil)
    }

    @Test("Unknown codes and reasons are kept")
    func codes() throws {
        #expect(
            try PeerFrame.read(.declined, [4, 0, 200, 0])
                == .answer(.declined(DeclineReason(rawValue: 200))))
        #expect(
            try PeerFrame.read(.goodbye, [4, 0, 9, 9])
                == .goodbye(Goodbye(Goodbye.Code(rawValue: 0x0909))))
        #expect(try PeerFrame.read(.reset, [4, 0, 9, 9]) == .reset(.init(rawValue: 0x0909)))
    }

    @Test(
        "The newest common version is used",
        arguments: [
            (1...1, 1...1, 1), (1...2, 1...1, 1), (1...3, 2...4, 3), (2...9, 1...2, 2),
            (1...1, 2...2, nil), (3...4, 1...2, nil),
        ] as [(ClosedRange<UInt16>, ClosedRange<UInt16>, UInt16?)])
    func agreement(own: ClosedRange<UInt16>, theirs: ClosedRange<UInt16>, version: UInt16?) {
        #expect(PeerProtocol.commonVersion(own, theirs) == version)
        #expect(PeerProtocol.commonVersion(theirs, own) == version)
    }

    @Test("Of a HELLO of later versions only the versions are read")
    func laterHello() throws {
        var (_, _, bytes) = try PeerSamples.named("HELLO")
        (bytes[10], bytes[12]) = (7, 8)
        #expect(throws: PeerFault.noCommonVersion(7...8)) {
            try PeerFrame.read(.hello, Array(bytes.prefix(14)))
        }
    }
}
