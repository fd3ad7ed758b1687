import Cluster
import Foundation
import Ground
import Testing
import Trials

@Suite("The page on the ring's format")
struct RingPageTests {
    /// The cells of the table whose header begins with `head`, by row.
    private func rows(under head: String) throws -> [[String]] {
        let page = try DoccPage.text("Ring.md")
        let lines = page.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex { $0.hasPrefix("| " + head) })
        return lines[(start + 2)...].prefix { $0.hasPrefix("|") }.map { line in
            line.split(separator: "|").map {
                String($0.trimmingCharacters(in: CharacterSet(charactersIn: " `")))
            }
        }
    }

    private func id(_ hexadecimal: String) -> NodeID {
        let lowestFirst = Array(DoccPage.bytes(hexadecimal).reversed())
        return NodeID(lowestFirst.span, at: 0)
    }

    @Test("The slots of keys")
    func slots() throws {
        let rows = try rows(under: "the key's SHA-256 begins")
        #expect(rows.count == 6)
        for row in rows {
            let bytes = DoccPage.bytes(row[0])
            let digest = EntryDigest(bytes.span)
            #expect(String(RingSlot(of: digest).number) == row[1])
        }
    }

    @Test("The distances of members")
    func distances() throws {
        let rows = try rows(under: "member")
        #expect(rows.count == 9)
        for row in rows {
            let weight = try #require(UInt16(row[1]))
            let number = try #require(UInt32(row[2]))
            let distance = SlotDistance(of: RingMember(id(row[0]), weight: weight))
            let slot = RingSlot(number: number)
            #expect(hexadecimal(distance.hash(slot)) == row[3])
            #expect(String(distance.distance(to: slot)) == row[4])
        }
    }

    @Test("The owners of slots")
    func owners() throws {
        let rows = try rows(under: "weights")
        #expect(rows.count == 11)
        let rings = [
            "all of 1 to a 100": (1...10).map { RingMember(NodeID(low: $0, high: 0)) },
            "1: 100, 2: 200, 3: 300": (1...3).map {
                RingMember(NodeID(low: $0, high: 0), weight: UInt16($0) * 100)
            },
        ].mapValues { Ring(members: $0) }
        for row in rows {
            let ring = try #require(rings[row[0]])
            let number = try #require(UInt32(row[1]))
            let owners = ring.owners(of: RingSlot(number: number))
            #expect(owners.map { String($0.low, radix: 16) }.joined(separator: " ") == row[2])
        }
    }

    @Test(
        "The table of balance and movement, where it is quickly computed",
        .disabled(if: Trials.isReduced))
    func balance() throws {
        for row in try rows(under: "nodes").prefix(3) {
            let count = try #require(Int(row[0]))
            var dice = SplitMix64(seed: 1)
            let members = RingStatistics.members(count + 1, using: &dice)
            let ring = Ring(members: members.dropLast())
            let figures = RingStatistics(
                of: ring, afterJoin: ring.adding(members[members.count - 1]),
                afterLeave: ring.removing(members[0].id))
            let numbers = [
                figures.peakToMean, figures.minToMean, figures.movedOnJoinToMean,
                figures.movedOnLeaveToMean,
            ]
            #expect(row.dropFirst().elementsEqual(numbers.map { String(format: "%.3f", $0) }))
        }
    }
}
