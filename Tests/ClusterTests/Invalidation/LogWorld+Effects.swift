import Cluster
import Ground
import Testing

/// Performing effects, with checks of the invariants.
extension LogWorld {
    mutating func happens(
        _ index: Int,
        _ event: (inout InvalidationLog, Instant, inout [InvalidationEffect]) -> Void
    ) {
        var effects: [InvalidationEffect] = []
        event(&hosts[index].log, now, &effects)
        hosts[index].log.flush(now, &effects)
        for effect in effects { perform(effect, index) }
        for event in hosts[index].log.takeOutput().events { take(event, index) }
        for (positions, nodes) in hosts[index].log.takeConfirmations() {
            // Every node gives the same members: there are no others.
            send(.confirm(positions, hosts.map(\.log.node)), from: index, to: nodes)
        }
        check(index)
    }

    private mutating func perform(_ effect: InvalidationEffect, _ index: Int) {
        switch effect {
        case .apply(let record, _):
            hosts[index].applied[record.id, default: 0] += 1
            #expect(hosts[index].applied[record.id] == 1, "applied twice")
        case .applyFloors(let positions, let count): hosts[index].floors.append((positions, count))
        case .write(let batch):
            #expect(hosts[index].batch == nil, "two batches at once")
            hosts[index].batch = batch
        case .ownRecordsSynced(let number):
            #expect(
                hosts[index].disk.filter { $0.isOwn(of: hosts[index].log.process) }.count
                    == Int(number))
        case .send(.push(let records), let nodes):
            for record in records { #expect(hosts[index].has(record.id)) }
            send(.push(records), from: index, to: nodes)
            for node in nodes where Bool.random(using: &dice) {
                hosts[index].log.recordPushed(upTo: records.map(\.id.number).max() ?? 0, to: node)
            }
        case .send(.appliedPositions(let positions), let nodes):
            send(.tell(positions), from: index, to: nodes)
        case .send(.repairRequest(let ranges), let nodes):
            send(.ask(ranges), from: index, to: nodes)
        case .receiptsSettled(let number):
            #expect(number > hosts[index].settledCount)
            hosts[index].settledCount = number
        case .send, .applyLocally, .reportConflict, .publishWindow:
            Issue.record("no effect of a log: \(effect)")
        }
    }

    private mutating func take(_ event: FenceEvent, _ index: Int) {
        switch event {
        case .streamRetired(let position): hosts[index].retired.append(position)
        case .streamForgotten(let process): hosts[index].retired.removeAll { $0.process == process }
        case .recordConflictFound(let position): hosts[index].contradictions.append(position)
        default: break
        }
    }

    private mutating func send(_ message: Message, from index: Int, to nodes: [NodeID]) {
        for node in nodes {
            letters.append(Letter(from: index, to: Self.index(node), message: message))
        }
    }

    /// Checks the invariants of one host.
    private mutating func check(_ index: Int) {
        let positions = hosts[index].log.syncedPositions
        guard positions != hosts[index].checked else { return }
        hosts[index].checked = positions
        for position in positions {
            #expect(hosts[index].hasAll(position), "a position covers what is not synced")
        }
    }
}
