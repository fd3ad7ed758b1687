import Cluster
import Ground
import Testing

/// What comes out of an event is done, and held against what must always be true.
extension LogWorld {
    mutating func happens(
        _ index: Int,
        _ event: (inout InvalidationLog, Instant, inout [InvalidationEffect]) -> Void
    ) {
        var effects: [InvalidationEffect] = []
        event(&hosts[index].log, now, &effects)
        for effect in effects { perform(effect, index) }
        check(index)
    }

    private mutating func perform(_ effect: InvalidationEffect, _ index: Int) {
        switch effect {
        case .apply(let record, let count):
            hosts[index].applied[record.name, default: 0] += 1
            #expect(hosts[index].applied[record.name] == 1, "applied twice")
            #expect(hosts[index].log.count(of: record.name) ?? count == count)
        case .applyFloors(let positions, let count): hosts[index].floors.append((positions, count))
        case .write(let batch):
            #expect(hosts[index].batch == nil, "two batches at once")
            hosts[index].batch = batch
        case .issued(let number):
            #expect(
                hosts[index].disk.filter { $0.isOwn(of: hosts[index].log.process) }.count
                    == Int(number))
        case .push(let records, let nodes):
            for record in records { #expect(hosts[index].has(record.name)) }
            send(.push(records), from: index, to: nodes)
            for node in nodes where Bool.random(using: &dice) {
                hosts[index].log.pushed(upTo: records.map(\.name.number).max() ?? 0, to: node)
            }
        case .confirm(let positions, let members, let nodes):
            send(.confirm(positions, members), from: index, to: nodes)
        case .tell(let positions, let node): send(.tell(positions), from: index, to: [node])
        case .ask(let ranges, let node): send(.ask(ranges), from: index, to: [node])
        case .settled(let number):
            #expect(number > hosts[index].settledCount)
            hosts[index].settledCount = number
        case .drop: break
        case .retire(let position): hosts[index].retired.append(position)
        case .forget(let process): hosts[index].retired.removeAll { $0.process == process }
        case .contradiction(let name): hosts[index].contradictions.append(name)
        }
    }

    private mutating func send(_ message: Message, from index: Int, to nodes: [NodeID]) {
        for node in nodes {
            letters.append(Letter(from: index, to: Self.index(node), message: message))
        }
    }

    /// What must be true at every instant.
    private mutating func check(_ index: Int) {
        let positions = hosts[index].log.positions
        guard positions != hosts[index].checked else { return }
        hosts[index].checked = positions
        for position in positions {
            #expect(hosts[index].hasAll(position), "a position covers what is not synced")
        }
    }
}
