import Cluster
import Ground

/// What befalls nodes and links.
extension FenceWorld {
    mutating func fault() {
        schedule(.fault, after: milliseconds(500...5_000))
        let index = Int.random(in: nodes.indices, using: &dice)
        switch Int.random(in: 0..<14, using: &dice) {
        case 0..<3:
            guard nodes[index].isUp, nodes[index].pausedUntil <= now else { return }
            tally.pauses += 1
            let pause = milliseconds(100...6_000)
            nodes[index].pausedUntil = now + pause
            schedule(.read(index), after: pause)
        case 3..<5:
            guard nodes[index].isUp else { return }
            tally.crashes += 1
            nodes[index].crash()
            schedule(.start(index), after: milliseconds(100...25_000))
        case 5..<9: partition()
        case 9: tell(index, [.leaveRequested])
        default: operators()
        }
    }

    /// Operators at several unfenced nodes forget whom they do not reach, each another one.
    mutating func operators() {
        var begun: Set<NodeID> = []
        for index in nodes.indices where nodes[index].pausedUntil <= now {
            guard var keeper = nodes[index].keeper, keeper.window.isCurrent(at: now) else {
                continue
            }
            let members = keeper.counted.standing?.set.members ?? []
            let gone = members.filter { !keeper.fence.isInContact(with: $0, at: now) }
            guard let member = gone.randomElement(using: &dice) else { continue }
            do throws(FenceKeeper.ForgetRefusal) {
                try keeper.forget([member], now: now, using: &dice)
                begun.insert(member)
            } catch {
                continue
            }
            let news = keeper.takeNews()
            nodes[index].keeper = keeper
            perform([news], at: index)
        }
        if begun.count > 1 { tally.rivals += 1 }
    }

    /// Some cannot speak to the others, who may or may not be heard.
    mutating func partition() {
        tally.partitions += 1
        let end = now + milliseconds(500...15_000)
        let isOneWay = Bool.random(using: &dice)
        let side = nodes.indices.filter { _ in Bool.random(using: &dice) }
        for from in nodes.indices {
            for to in nodes.indices where side.contains(from) != side.contains(to) {
                // Some links are missed, so that news goes round by others.
                guard Int.random(in: 0..<4, using: &dice) > 0 else { continue }
                if side.contains(from) || !isOneWay { blocked[from][to] = end }
            }
        }
    }

    /// The survivors of a split forget the other side, which does the same.
    mutating func forgetFenced(_ index: Int, _ isCurrent: Bool) {
        let since = nodes[index].fencedSince
        nodes[index].fencedSince = isCurrent ? nil : since ?? now
        guard let since, !isCurrent, now - since > .seconds(4), var keeper = nodes[index].keeper
        else { return }
        let set = keeper.counted.standing?.set.members ?? []
        let gone = set.filter { !keeper.fence.isInContact(with: $0, at: now) }
        try? keeper.forget(gone, now: now, using: &dice)
        let news = keeper.takeNews()
        nodes[index].keeper = keeper
        perform([news], at: index)
    }
}
