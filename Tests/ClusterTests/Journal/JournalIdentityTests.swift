import Cluster
import Ground
import Testing

@Suite("Whether a journal has everything that its member has promised")
struct JournalIdentityTests {
    private static let node = NodeID(low: 1, high: 2)

    @Test("Starts that ended before writing to the journal have promised nothing")
    func silentStarts() {
        let member = JournalIdentity(node: Self.node, beganInEpoch: 3)
        for epoch in 4...9 as ClosedRange<UInt64> {
            #expect(member.loss(of: 3, at: epoch) == nil)
        }
        let first = JournalIdentity(node: Self.node, beganInEpoch: 0)
        #expect(first.loss(of: nil, at: 1) == nil && first.loss(of: nil, at: 5) == nil)
    }

    @Test("A start that ended between the journal's header and the identity file is in the journal")
    func between() {
        #expect(JournalIdentity(node: Self.node, beganInEpoch: 3).loss(of: 4, at: 5) == nil)
        #expect(JournalIdentity(node: Self.node, beganInEpoch: 0).loss(of: 1, at: 2) == nil)
    }

    @Test("A journal that is missing or ends too early is lost")
    func lost() {
        let member = JournalIdentity(node: Self.node, beganInEpoch: 3)
        #expect(member.loss(of: nil, at: 4) == .missing)
        #expect(member.loss(of: 2, at: 4) == .older(found: 2, begun: 3))
    }

    @Test("A journal of a later start belongs to another directory")
    func ahead() {
        let member = JournalIdentity(node: Self.node, beganInEpoch: 3)
        #expect(member.loss(of: 3, at: 3) == .fromFutureEpoch(3))
        #expect(member.loss(of: 7, at: 4) == .fromFutureEpoch(7))
        #expect(member.loss(of: nil, at: 1) == .fromFutureEpoch(3))
    }

    @Test("The identity file is read as written, and refused if any byte has changed")
    func bytes() throws {
        let member = JournalIdentity(node: Self.node, beganInEpoch: 0x0102_0304_0506_0708)
        let bytes = member.bytes
        #expect(bytes.count == JournalIdentity.bytesCount)
        #expect(try JournalIdentity(bytes.span) == member)
        for place in bytes.indices {
            var changed = bytes
            changed[place] ^= 0x10
            #expect(throws: JournalDamage.Reason.checksum) { try JournalIdentity(changed.span) }
        }
        #expect(throws: JournalDamage.Reason.truncated) {
            try JournalIdentity(bytes.span.extracting(0..<31))
        }
    }
}
