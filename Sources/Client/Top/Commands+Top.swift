import Glibc
import Ground

/// How nodes are watched.
package struct TopArguments: Sendable {
    /// How often they are asked, as the operator writes it.
    package var interval = "1s"
    /// One picture, and the end.
    package var isOnce = false

    package init() {}
}

extension Commands {
    /// Shows what nodes do, again and again: on a terminal in place of what is there, else once;
    /// for programs a line of JSON for each node and time.
    package func top(_ order: TopArguments) -> CommandOutcome {
        run { () throws(CommandError) in
            let interval = try CommandOptions.duration(order.interval, "--interval")
            guard interval >= .milliseconds(100) else {
                throw CommandError(.usageError, "--interval: at least 100ms are allowed")
            }
            let watch = TopSession(try options.clients(), every: interval)
            try watch.connect(isAlone: options.nodes.count < 2)
            if options.isJSON { return printLines(watch, order) }
            guard !order.isOnce, console.isTerminal, let screen = Screen() else {
                watch.sample(times: 2)
                let lines = watch.state.render(
                    columns: console.columns ?? 140, rows: nil, now: BootClock.now())
                console.print(
                    lines.map { $0.rendered(isColoured: false) }.joined(separator: "\n"))
                return .succeeded
            }
            run(watch, on: screen)
            return .succeeded
        }
    }

    /// A line for each node, each time; until nobody reads it.
    private func printLines(_ watch: TopSession, _ order: TopArguments) -> CommandOutcome {
        while true {
            let isRead = watch.jsonLines().allSatisfy { line in
                Console.write(Array((line + "\n").utf8), to: STDOUT_FILENO)
            }
            if order.isOnce || !isRead { return .succeeded }
            watch.waitForNextPoll()
        }
    }

    private func run(_ watch: TopSession, on screen: Screen) {
        let inputs = [screen.keyboard, screen.signalReadDescriptor].compactMap(\.self)
        var isOn = true
        while isOn {
            let (columns, rows) = screen.size
            screen.show(
                watch.state.render(columns: columns, rows: rows, now: BootClock.now()),
                isColoured: console.isColoured)
            let readable = watch.runUntilUpdate(orUntilReadable: inputs)
            if readable.contains(screen.signalReadDescriptor) { isOn = handleSignals(screen) }
            guard let keyboard = screen.keyboard, readable.contains(keyboard) else { continue }
            guard let keys = screen.keys() else { return }
            isOn = keys.allSatisfy { watch.state.keyPressed($0) } && isOn
        }
    }

    /// False if it is over.
    private func handleSignals(_ screen: Screen) -> Bool {
        for wish in screen.pendingSignalActions() {
            switch wish {
            case .resize: continue
            case .suspend: screen.suspend()
            // As the key q: that is how one leaves it.
            case .terminate(SIGINT): return false
            case .terminate(let number): screen.terminate(by: number)
            }
        }
        return true
    }
}
