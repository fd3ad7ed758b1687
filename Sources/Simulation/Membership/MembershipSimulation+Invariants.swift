import Cluster
import Ground

/// The checked invariants.
extension MembershipSimulation {
    /// Checks a change of a record that `process` has reported, and records the report of a death.
    mutating func checkChange(
        _ record: MemberRecord, _ before: MemberRecord?, by process: Int
    ) throws {
        trace.add(record)
        if let rule = processes[process].recordChange(record, from: before) {
            throw violation("\(name(process)) \(rule)")
        }
        let subject = processes.lastIndex {
            $0.membership.own.member.process == record.member.process
        }
        guard let subject else { throw violation("a process that never was: \(record)") }
        try require(
            record.state != .left || processes[subject].membership.phase != .serving,
            "\(name(process)) believes that \(name(subject)) has left")
        log("\(name(process)) believes \(name(subject)) \(record.state) \(record.incarnation)")
        guard record.state == .dead else { return }
        deathReports.append(DeathReport(of: subject, by: process, at: now))
        let isWrong =
            processes[subject].isRunning && processes[subject].exemptUntil < now
            && processes[process].exemptUntil < now
        if isWrong {
            falsePositives += 1
            log("WRONGLY")
        }
    }

    /// True if every running process believes exactly the running ones alive, with their own
    /// records.
    package var isAgreed: Bool { disagreement == nil }

    /// A difference between the views of the running processes; `nil` if they agree with the facts.
    package var disagreement: String? {
        let living = running
        let truth = living.map { processes[$0].membership.own }
            .sorted { $0.member.id < $1.member.id }
        for process in living {
            let believed = processes[process].membership.records.filter { $0.state.isLive }
                .sorted { $0.member.id < $1.member.id }
            guard believed != truth else { continue }
            let wrong = Set(believed).symmetricDifference(truth).map { "\($0)" }.sorted()
            return "\(name(process)) differs in \(wrong.joined(separator: "; "))"
        }
        return nil
    }

    /// A pair of running processes without exactly one connection that both use; `nil` if there is
    /// none.
    package var disconnectedPair: String? {
        var pairs: [[Int]: [Int]] = [:]
        for link in network.openLinks {
            pairs[network.processes(of: link).sorted(), default: []].append(link)
        }
        let living = running
        for (index, one) in living.enumerated() {
            for other in living[(index + 1)...] {
                let shared = pairs[[one, other].sorted()] ?? []
                guard shared.count == 1, let link = shared.first else {
                    return "\(name(one)) and \(name(other)) have \(shared.count) connections"
                }
                for end in network.links[link].ends {
                    let peer = end.process == one ? other : one
                    guard processes[end.process].connectionsInUse[processes[peer].id] == end.id,
                        processes[end.process].membership.connection(to: processes[peer].id)
                            == end.id
                    else { return "\(name(end.process)) does not use the one to \(name(peer))" }
                }
            }
        }
        return nil
    }

    /// Returns true if each of the two processes uses a connection with the other.
    package func areConnected(_ one: Int, _ other: Int) -> Bool {
        processes[one].connectionsInUse[processes[other].id] != nil
            && processes[other].connectionsInUse[processes[one].id] != nil
    }

    /// Returns true if no running process believes that `process` is live.
    package func isKnownGone(_ process: Int) -> Bool {
        let record = processes[process].membership.own
        return running.allSatisfy { other in
            guard let believed = processes[other].membership[record.member.id] else { return true }
            return believed.member.process != record.member.process || !believed.state.isLive
        }
    }

    /// Returns true if every running process has the present record of `process`.
    package func isKnownAlive(_ process: Int) -> Bool {
        let record = processes[process].membership.own
        return running.allSatisfy { processes[$0].membership[record.member.id] == record }
    }

    /// The bytes sent by all processes, by the estimate of the wire format.
    package var bytesSent: Int { processes.reduce(0) { $0 + $1.bytesSent } }
}
