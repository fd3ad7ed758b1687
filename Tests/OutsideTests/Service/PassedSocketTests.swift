import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Listening sockets that a service manager passes to the node")
    struct PassedSocketTests {
        /// A service manager with one listening socket, and a client: twice, the client connects
        /// while no node runs, and then the node is started, answers and is stopped.
        ///
        /// PORT in the arguments stands for the port of the socket. Prints the status line of each
        /// response and the exit status of each node.
        private static let manager = """
            import os, signal, socket, sys
            passed = socket.socket()
            passed.bind(("127.0.0.1", 0))
            passed.listen()
            words = [word.replace("PORT", str(passed.getsockname()[1])) for word in sys.argv[1:]]
            for _ in range(2):
                client = socket.create_connection(passed.getsockname())
                client.sendall(b"GET /healthz HTTP/1.0\\r\\n\\r\\n")
                node = os.fork()
                if node == 0:
                    os.dup2(passed.fileno(), 3)
                    os.set_inheritable(3, True)
                    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
                    os.execv(words[0], words)
                client.settimeout(60)
                line = client.makefile("rb").readline().decode().strip()
                client.close()
                os.kill(node, signal.SIGTERM)
                print(line, os.waitstatus_to_exitcode(os.waitpid(node, 0)[1]))
            """

        /// Runs a node with descriptor 3 passed to it, which `open` opens in a shell.
        private func run(_ open: String, _ flags: [String]) throws -> ProgramResult {
            let script = "\(open); LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\""
            return try Program.run(
                "/bin/bash", ["-c", script, "bash", try NodeProcess.binary(), "serve"] + flags)
        }

        @Test("Connections that are made while no node runs wait for the next one")
        func restarted() throws {
            let result = try Program.run(
                try Program.find("python3"),
                [
                    "-c", Self.manager, try NodeProcess.binary(), "serve", "--listen",
                    "127.0.0.1:PORT", "--admin-listen", "off",
                ], seconds: 120)
            #expect(
                String(decoding: result.output, as: UTF8.self)
                    == "HTTP/1.1 200 OK 0\nHTTP/1.1 200 OK 0\n", "\(result.errors)")
        }

        @Test(
            "A socket that no setting names prevents the start: its connections would wait forever")
        func unnamed() throws {
            let result = try Program.run(
                try Program.find("python3"),
                [
                    "-c",
                    // No node takes the connection, so nothing is read from it.
                    Self.manager.replacing("range(2)", with: "range(1)")
                        .replacing(
                            #"client.makefile("rb").readline().decode().strip()"#, with: "''"
                        )
                        .replacing("os.kill", with: "not line or os.kill"),
                    try NodeProcess.binary(), "serve", "--listen", "127.0.0.1:0",
                    "--admin-listen", "off",
                ], seconds: 60)
            #expect(result.output == Data(" 1\n".utf8))
            #expect(
                result.errors.contains("which none of listen, plain-listen and admin-listen names"))
        }

        @Test("Any other descriptor prevents the start")
        func notSocket() throws {
            let result = try run(
                "exec 3</dev/null", ["--listen", "127.0.0.1:0", "--admin-listen", "off"])
            #expect(result.status == 1)
            #expect(result.errors.contains("descriptor 3 of LISTEN_FDS is not a listening TCP"))
        }

        @Test("Descriptors for another process are left alone")
        func otherProcess() throws {
            let node = try NodeProcess(environment: ["LISTEN_PID": "1", "LISTEN_FDS": "1"])
            #expect(try node.get("/healthz").status == 200)
        }
    }
}
