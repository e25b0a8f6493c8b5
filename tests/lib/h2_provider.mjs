// A provider that speaks HTTP/2 over TLS and nothing else, and says what it is told to say.
//
//	node tests/lib/h2_provider.mjs CERTIFICATE KEY [STREAMS]
//
// STREAMS: so many a connection; more are refused.
//
// One JSON object a line. It writes {"port"}, then {"request", "session", "message", "key"} when a
// request has come whole, {"closed", "code"} when its stream ends (0: properly) and {"gone"} when a
// connection ends. It reads {"to": request} with "say" (a token), "fill" and "times" (so many at
// once), "end" or "goaway" (its connection takes no further requests). A message "status:500" is answered with that status.
// A message "refuse:7" is refused seven times as a stream too many, told as {"refused": message}, before it is a request.
// A message "break:close" ends its connection in order whenever it comes, "break:abort" with a reset of it, "break:stream"
// its stream alone with an error; told as {"broken": message}.
import http2 from "node:http2";
import fs from "node:fs";
import readline from "node:readline";

const [cert, key] = process.argv.slice(2, 4).map(name => fs.readFileSync(name));
const maxConcurrentStreams = Number(process.argv[4] ?? 100);
const server = http2.createSecureServer({ cert, key, settings: { maxConcurrentStreams } });
const streams = new Map();
const refusals = new Map(); // by message: how many are to come
const wires = new Map(); // by the peer's port: the connections below TLS
let sessions = 0, requests = 0;

function tell(what) {
	process.stdout.write(JSON.stringify(what) + "\n");
}

function chunk(choice) {
	return `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`;
}

function refuse(stream, message) {
	const left = refusals.get(message) ?? Number(/^refuse:(\d+)/.exec(message)?.[1] ?? 0);

	refusals.set(message, left - 1);
	if (left <= 0)
		return false;
	tell({ refused: message });
	stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
	return true;
}

const breaks = {
	"break:close": stream => stream.session.destroy(),
	"break:abort": stream => wires.get(stream.session.socket.remotePort).resetAndDestroy(),
	"break:stream": stream => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR),
};

function breakOff(stream, message) {
	if (!breaks[message])
		return false;
	tell({ broken: message });
	breaks[message](stream);
	return true;
}

function begin(stream, headers, body) {
	const message = JSON.parse(body).messages.at(-1).content;

	if (refuse(stream, message) || breakOff(stream, message))
		return;
	const request = ++requests;
	const status = /^status:(\d+)$/.exec(message)?.[1] ?? 200;

	streams.set(request, stream);
	stream.on("close", () => tell({ closed: request, code: stream.rstCode }));
	stream.respond({ ":status": status, "content-type": "text/event-stream" });
	tell({ request, session: stream.session.number, key: headers.authorization, message });
}

server.on("connection", wire => wires.set(wire.remotePort, wire));
server.on("session", session => {
	session.number = ++sessions;
	session.on("close", () => tell({ gone: session.number }));
});
server.on("stream", (stream, headers) => {
	let body = "";

	stream.on("error", () => {}); // the end of it is told
	stream.setEncoding("utf8");
	stream.on("data", text => body += text);
	stream.on("end", () => begin(stream, headers, body));
});
readline.createInterface({ input: process.stdin }).on("line", line => {
	const order = JSON.parse(line), stream = streams.get(order.to);

	if (order.say !== undefined)
		stream.write(chunk({ delta: { content: order.say } }));
	if (order.fill !== undefined)
		stream.write(chunk({ delta: { content: order.fill } }).repeat(order.times));
	if (order.goaway)
		stream.session.goaway(0, stream.id);
	if (order.end)
		stream.end(chunk({ delta: {}, finish_reason: "stop" }) + "data: [DONE]\n\n");
});
server.listen(0, "127.0.0.1", () => tell({ port: server.address().port }));
