import Cluster
import Ground

extension InvalidationMessage {
    /// A message whose lists have at most about `bytesMax` in all, up to their limits.
    static func random(using dice: inout Dice, bytesMax: Int) -> InvalidationMessage {
        let positionsMax = min(PeerProtocol.knowledgeMax, bytesMax / 80)
        let recordsMax = bytesMax / 2_100
        let rangesMax = min(PeerProtocol.rangesMax, bytesMax / 200)
        switch Int.random(in: 0..<8, using: &dice) {
        case 0: return .push(dice.list(max: recordsMax) { .random(using: &$0) })
        case 1:
            return .confirm(
                dice.list(max: positionsMax) { .random(using: &$0) },
                members: dice.list(max: min(PeerProtocol.companyMax, bytesMax / 100)) {
                    NodeID(using: &$0)
                },
                view: .random(using: &dice))
        case 2: return .told(dice.list(max: positionsMax) { .random(using: &$0) })
        case 3: return .ask(dice.list(max: rangesMax) { .random(using: &$0) })
        case 4:
            return .repair(
                RepairAnswer(
                    records: dice.list(max: recordsMax / 2) { .random(using: &$0) },
                    floors: dice.list(max: rangesMax) { .random(using: &$0) },
                    covered: dice.list(max: rangesMax) { .random(using: &$0) }))
        case 5: return .round(dice.number(), digest: dice.number())
        case 6:
            var view = CountView.random(using: &dice)
            view.standing = nil
            return .unchanged(round: dice.number(), digest: dice.number(), view: view)
        default:
            return .answer(
                FenceAnswer(
                    round: Bool.random(using: &dice) ? nil : dice.number(),
                    holds: dice.list(max: positionsMax / 2) { .random(using: &$0) },
                    view: .random(using: &dice)),
                retired: dice.list(max: positionsMax / 2) { .random(using: &$0) })
        }
    }

    /// What taking both one after the other is, as far as that is one message.
    func joined(_ next: InvalidationMessage) -> InvalidationMessage? {
        switch (self, next) {
        case (.push(let first), .push(let second)): .push(first + second)
        case (.told(let first), .told(let second)): .told(first + second)
        case (.confirm(let first, let members, let view), .confirm(let second, let same, let it))
        where members == same && view == it:
            .confirm(first + second, members: members, view: view)
        case (.repair(let first), .repair(let second))
        where first.floors.isEmpty && first.covered.isEmpty:
            .repair(
                RepairAnswer(
                    records: first.records + second.records, floors: second.floors,
                    covered: second.covered))
        default: nil
        }
    }
}

extension InvalidationRecord {
    static func random(using dice: inout Dice) -> InvalidationRecord {
        let name = RecordName(stream: ProcessID(using: &dice), number: dice.number() | 1)
        return InvalidationRecord(name, content: dice.bytes(max: 2_000))
    }
}

extension StreamRange {
    static func random(using dice: inout Dice) -> StreamRange {
        let numbers: [UInt64] = [dice.number() | 1, dice.number() | 1].sorted()
        return StreamRange(process: ProcessID(using: &dice), numbers: numbers[0]...numbers[1])
    }
}
