import { Link } from '@tanstack/react-router';
import type { Template } from '../../data/api/models.js';
import { makerOf } from '../../data/instances/templates.js';
import styles from './page.module.css';

/** A template in the list. Its names and texts are of strangers: they are cut, not trusted. */
export function TemplateRow({ template }: { template: Template }) {
  const { id, name, description, image, kind, mode, coming_soon, recommended } = template;
  const marks = [
    ...(recommended ? ['recommended'] : []),
    ...(coming_soon ? ['coming soon'] : []),
    kind === 'vm' ? 'virtual machine' : 'container',
    ...mode,
  ];
  return (
    <li className={styles.row}>
      <div className={styles.about}>
        <h2 className={styles.name}>
          <Link to="/templates/$id" params={{ id }}>
            {name}
          </Link>
        </h2>
        {description !== '' && <p className={styles.description}>{description}</p>}
        <code className={styles.image}>{image}</code>
      </div>
      <div className={styles.marks}>
        <span>{makerOf(template)}</span>
        <ul>
          {marks.map((mark) => (
            <li key={mark}>{mark}</li>
          ))}
        </ul>
      </div>
    </li>
  );
}
