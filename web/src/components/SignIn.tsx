// SignIn.tsx - the one page of who has no token: what to run, or where to paste.
import {useState} from 'react';
import {Problem, tryToken, wasExpired} from '../lib/api';
import {useTitle} from '../lib/hooks';

export function SignIn({why}: {why?: string}) {
	const [text, set] = useState('');
	const [wrong, setWrong] = useState('');
	const [busy, setBusy] = useState(false);
	useTitle('Sign in');
	return <main className="sign-in">
		<h1>Sign in</h1>
		<p role={why || wasExpired() ? 'alert' : undefined}>{why ?? (wasExpired() ? 'The token is not valid any more.' : 'This page needs a link that works once.')}</p>
		<p>Run <code>uar open</code> on the machine of the server and open the link that it prints. After signing in you are back here.</p>
		<form onSubmit={async (e) => {
			e.preventDefault();
			setBusy(true);
			try {
				await tryToken(text.trim());
			} catch (problem) {
				setWrong(problem instanceof Problem && problem.status === 401 ? 'The server does not know this token.' : problem instanceof Problem ? problem.message : 'The server does not answer.');
			}
			setBusy(false);
		}}>
			<div className="field"><label htmlFor="token">Or paste the token, which is in the file <code>token</code> of the data directory</label>
				<input id="token" className="input" type="password" autoComplete="off" spellCheck={false} required value={text} onChange={(e) => set(e.target.value)} aria-describedby="token-wrong" /></div>
			<div id="token-wrong" className="wrong" role="alert">{wrong}</div>
			<button type="submit" className="btn main-act" disabled={busy}>Sign in</button>
		</form>
	</main>;
}
