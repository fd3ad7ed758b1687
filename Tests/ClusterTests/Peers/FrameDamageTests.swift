import Cluster
import Ground
import Testing
import Trials

@Suite("Damaged frames")
struct FrameDamageTests {
    @Test(
        "A payload truncated in its fixed part or a field is a fault",
        arguments: PeerSamples.names)
    func truncated(name: String) throws {
        let (_, kind, whole) = try PeerSamples.named(name)
        // It may end after the fixed part and after each field.
        var ends = [Int(whole.span.little16(at: 0))]
        while let end = ends.last, end < whole.count {
            ends.append(end + 4 + Int(whole.span.little16(at: end + 2)))
        }
        #expect(ends.last == whole.count)
        for count in 0..<whole.count {
            let cut = Array(whole.prefix(count))
            do throws(PeerFault) {
                _ = try PeerFrame.read(kind, cut)
                #expect(ends.contains(count), "\(name) cut to \(count)")
            } catch {
                let isOfPart = error == .truncated(kind)
                // Without its member or its head a complete payload is invalid.
                #expect(isOfPart || (error == .malformed(kind) && ends.contains(count)))
            }
        }
    }

    @Test("A fixed part shorter than in version 1 is a fault", arguments: PeerSamples.names)
    func shortened(name: String) throws {
        let (_, kind, whole) = try PeerSamples.named(name)
        let size = Int(whole.span.little16(at: 0))
        for count in 0..<size {
            var bytes = whole
            (bytes[0], bytes[1]) = (UInt8(count), 0)
            #expect(throws: PeerFault.truncated(kind)) { try PeerFrame.read(kind, bytes) }
        }
    }

    @Test(
        "With any value of any byte a payload decodes or is a fault", arguments: PeerSamples.names)
    func damaged(name: String) throws {
        let (_, kind, whole) = try PeerSamples.named(name)
        var faults = 0
        var others = 0
        let intact = try PeerFrame.read(kind, whole)
        for index in whole.indices {
            for change in 1...UInt8.max {
                var bytes = whole
                bytes[index] ^= change
                do throws(PeerFault) {
                    if try PeerFrame.read(kind, bytes) != intact { others += 1 }
                } catch {
                    faults += 1
                }
            }
        }
        // The first bytes are a size, and most other values exceed the payload.
        #expect(faults >= 255)
        #expect(others > 0 || [.fetching, .absent, .behind].contains(kind))
    }

    @Test("Random bytes decode or are a fault")
    func noise() {
        var dice = SplitMix64(seed: 11)
        var read = 0
        for _ in 0..<Trials.count(20_000) {
            var bytes = dice.bytes(max: 120)
            if bytes.count >= 2, Bool.random(using: &dice) {
                (bytes[0], bytes[1]) = (UInt8.random(in: 0...64, using: &dice), 0)
            }
            let kind = PeerFrameKind(rawValue: UInt8.random(in: 0...30, using: &dice))
            if (try? PeerFrame.read(kind, bytes)) != nil { read += 1 }
        }
        #expect(read > 20 || Trials.isReduced)
    }
}

@Suite("Contradictory frames")
struct FrameSenseTests {
    @Test("An entity tag or a part outside its head is a fault")
    func places() throws {
        for (offset, limit) in [(60, 8), (64, 6)] {
            var bytes = try PeerFrame.answer(.held(PeerSamples.entry)).parts().payload
            bytes[offset] = UInt8(limit)
            #expect(PeerFrame.fault(.held, bytes) == nil)
            bytes[offset] = UInt8(limit + 1)
            #expect(PeerFrame.fault(.held, bytes) == .malformed(.held))
        }
        let whole = try PeerFrame.answer(.held(PeerSamples.entry)).parts().payload
        for part in 0..<5 {
            var bytes = whole
            bytes[bytes.count - 20 + 4 * part] = 13
            #expect(PeerFrame.fault(.held, bytes) == .malformed(.held), "part \(part)")
        }
    }

    @Test("A HELLO of another protocol, without versions, or with limits that are too small")
    func hello() throws {
        let whole = try PeerFrame.hello(PeerSamples.hello).parts().payload
        var bytes = whole
        bytes[9] = UInt8(ascii: "S")
        #expect(PeerFrame.fault(.hello, bytes) == .notPeerProtocol)
        bytes = whole
        (bytes[10], bytes[12]) = (2, 1)
        #expect(PeerFrame.fault(.hello, bytes) == .malformed(.hello))
        bytes = whole
        (bytes[10], bytes[12]) = (2, 3)
        #expect(PeerFrame.fault(.hello, bytes) == .noCommonVersion(2...3))
        bytes = whole
        bytes[12] = 2
        #expect(PeerFrame.fault(.hello, bytes) == .malformed(.hello), "versions that differ")
        for (offset, byte) in [(17, 0x03), (22, 0), (25, 0), (30, 0), (31, 0x80)] {
            bytes = whole
            bytes[offset] = UInt8(byte)
            if offset == 17 || offset == 25 { bytes[offset - 1] = 0 }
            #expect(PeerFrame.fault(.hello, bytes) == .malformed(.hello), "offset \(offset)")
        }
    }

    @Test("A grant of zero bytes is a fault")
    func credit() throws {
        #expect(PeerFrame.fault(.credit, [8, 0, 0, 0, 0, 0, 0, 0]) == .emptyFrame(.credit))
    }
}
