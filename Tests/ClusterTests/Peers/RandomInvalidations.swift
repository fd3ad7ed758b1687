import Cluster
import Ground

extension InvalidationMessage {
    /// A random message whose lists have about `bytesMax` at most, within their limits.
    static func random(using dice: inout SplitMix64, bytesMax: Int) -> InvalidationMessage {
        let positionsMax = min(PeerProtocol.messagePositionsMax, bytesMax / 80)
        let recordsMax = bytesMax / 2_100
        let rangesMax = min(PeerProtocol.rangesMax, bytesMax / 200)
        switch Int.random(in: 0..<8, using: &dice) {
        case 0: return .push(dice.list(max: recordsMax) { .random(using: &$0) })
        case 1:
            return .confirmation(
                dice.list(max: positionsMax) { .random(using: &$0) },
                members: dice.list(max: min(PeerProtocol.confirmationMembersMax, bytesMax / 100)) {
                    NodeID(using: &$0)
                },
                view: .random(using: &dice))
        case 2: return .appliedPositions(dice.list(max: positionsMax) { .random(using: &$0) })
        case 3: return .repairRequest(dice.list(max: rangesMax) { .random(using: &$0) })
        case 4:
            return .repairResponse(
                RepairResponse(
                    records: dice.list(max: recordsMax / 2) { .random(using: &$0) },
                    floors: dice.list(max: rangesMax) { .random(using: &$0) },
                    covered: dice.list(max: rangesMax) { .random(using: &$0) }))
        case 5: return .roundRequest(dice.number(), digest: dice.number())
        case 6:
            var view = VoterSetView.random(using: &dice)
            view.configuration = nil
            return .roundUnchanged(round: dice.number(), digest: dice.number(), view: view)
        default:
            return .roundResponse(
                FenceResponse(
                    round: Bool.random(using: &dice) ? nil : dice.number(),
                    synced: dice.list(max: positionsMax / 2) { .random(using: &$0) },
                    view: .random(using: &dice)),
                retired: dice.list(max: positionsMax / 2) { .random(using: &$0) })
        }
    }

    /// The message equivalent to both in this order; `nil` if there is none.
    func joined(_ next: InvalidationMessage) -> InvalidationMessage? {
        switch (self, next) {
        case (.push(let first), .push(let second)): .push(first + second)
        case (.appliedPositions(let first), .appliedPositions(let second)):
            .appliedPositions(first + second)
        case (
            .confirmation(let first, let members, let view),
            .confirmation(let second, let same, let it)
        )
        where members == same && view == it:
            .confirmation(first + second, members: members, view: view)
        case (.repairResponse(let first), .repairResponse(let second))
        where first.floors.isEmpty && first.covered.isEmpty:
            .repairResponse(
                RepairResponse(
                    records: first.records + second.records, floors: second.floors,
                    covered: second.covered))
        default: nil
        }
    }
}

extension InvalidationRecord {
    static func random(using dice: inout SplitMix64) -> InvalidationRecord {
        let name = RecordID(stream: ProcessID(using: &dice), number: dice.number() | 1)
        return InvalidationRecord(name, content: dice.bytes(max: 2_000))
    }
}

extension StreamRange {
    static func random(using dice: inout SplitMix64) -> StreamRange {
        let numbers: [UInt64] = [dice.number() | 1, dice.number() | 1].sorted()
        return StreamRange(process: ProcessID(using: &dice), numbers: numbers[0]...numbers[1])
    }
}
