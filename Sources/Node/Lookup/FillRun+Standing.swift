import Ground
import Serving
import Store
import Synchronization
import Tiers

/// Holding what a fetch brings against what was invalidated since it began.
extension FillRun {
    /// What an answer with these tags and facts is good for at this moment; without facts its age
    /// is not looked at.
    func standing(_ tags: [[UInt8]], _ facts: EntryFacts?, isShared: Bool) -> Fill.Standing {
        let node = hall.node
        return Fill.Standing(
            of: node.marks.effect(onAnswer: key, tags: tags, stamp: stamp),
            isExcluded: facts.map {
                node.fence.excludes($0.validatedAt, now: SystemClock.now())
            } ?? false, isShared: isShared)
    }

    /// Who comes now may not wait for what it brings, as far as is known what that is.
    var isOvertaken: Bool {
        let tags = state.withLock { $0.tags }
        return hall.node.marks.effect(onAnswer: key, tags: tags, stamp: stamp) != nil
    }

    /// What it brings may be given to nobody any more, be it that it was good when it came.
    func isVoid(_ state: borrowing State) -> Bool {
        let isShared = state.lookup.fill.isShared
        switch state.known.outcome {
        case .answering(let answer):
            let facts = state.known.stoodIn == nil ? answer.facts : nil
            return standing(answer.tags, facts, isShared: isShared) == .void
        case .stored(let resident), .found(let resident):
            let facts = state.known.stoodIn == nil ? resident.facts : nil
            return standing(resident.tags, facts, isShared: isShared) == .void
        case .open, .refused: return false
        }
    }
}
